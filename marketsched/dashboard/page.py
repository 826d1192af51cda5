"""The dashboard's page: the view of a player in a browser. The only file that needs the extra ``viz``.

Every visitor gets a player of their own, which ends with the visit. The page holds no market logic:
it shows the newest `Frame`, and hands the visitor's wishes to the `Player`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any
from weakref import WeakSet

import reacton.ipyvuetify as v
import solara
import solara.lab
from solara.server.kernel_context import get_current_context

from marketsched.config.owner_mix import LIES
from marketsched.config.scenario import Scenario
from marketsched.dashboard.descriptions import HELP, bound_rows, group_rows, numbers, sentences, start_rows, state
from marketsched.dashboard.figures import pictures
from marketsched.dashboard.player import Frame, Player
from marketsched.dashboard.settings import Form, Settings, first_form, read_form
from marketsched.mechanisms.registry import mechanism_names

MOST_TYPED = 200  # characters
LOADS = (20, 300, 10)  # per cent: lowest and highest on the slider, and its step
LABELS = {
    "mechanism": "Mechanism",
    "capacity": "Capacity, nodes",
    "load": "Load, % of the scenario's jobs",
    "liars": "Owners who lie, %",
    "lie": "How they lie",
    "amount": "By how much",
    "seed": "Seed",
    "rounds": "Rounds per step",
}
STARTS = ("start", "value", "price", "failure", "expected surplus")
GROUPS = ("strategy", "owners", "jobs", "completed", "credits per owner")


@dataclass
class Serving:
    """The served scenario and settings: set once, before the first visitor."""

    scenario: Scenario | None = None
    seed: int = 0
    data: Path | None = None
    playing: bool = False  # as soon as a visitor's market is there


@dataclass(frozen=True)
class ShownFrame:
    """A frame, and its figures as SVG by name."""

    frame: Frame = field(default_factory=Frame)
    figures: dict[str, str] = field(default_factory=dict)


SERVED = Serving()
STYLE = (Path(__file__).parent / "assets" / "page.css").read_text(encoding="utf-8")
PLAYERS: WeakSet[Player] = WeakSet()  # of all visitors, to be closed when the server ends


@solara.component
def Page() -> None:
    """Show one visitor's market."""
    scenario = SERVED.scenario
    assert scenario is not None, "SERVED.scenario is set before the server starts"
    first = solara.use_memo(lambda: first_form(scenario, SERVED.seed), [])
    form, set_form = solara.use_state(first)
    shown, set_shown = solara.use_state(ShownFrame())
    job, set_job = solara.use_state("")
    player = solara.use_ref(None)

    def begin() -> Callable[[], None]:
        settings, _ = read_form(first)
        assert settings is not None, "a scenario's own settings are legal"

        # Messages of the browser are handled under this lock. A page drawn meanwhile from another thread would
        # put back what a control held a moment ago.
        visit = get_current_context().lock

        def show(frame: Frame) -> None:
            fresh = ShownFrame(frame, pictures(frame.view, frame.story))
            with visit:
                set_shown(fresh)

        player.current = Player(scenario, settings, show, data=SERVED.data)
        PLAYERS.add(player.current)
        if SERVED.playing:
            player.current.play(settings.rounds)
        return player.current.close  # type: ignore[no-any-return]

    solara.use_effect(begin, [])
    wished, faults = read_form({**form, "rounds": first["rounds"]})
    step, step_faults = read_form({**first, "rounds": form["rounds"]})  # other controls may be half typed
    frame = shown.frame

    def set_control(control: str, value: object) -> None:
        value = typed(value)
        changed = {control: value}
        if control == "lie" and value in LIES:
            changed["amount"] = f"{LIES[value].telling:g}"  # a telling amount of the new lie, in its own unit
        set_form(lambda newest: {**newest, **changed})  # two changes may come before the page is drawn again

    def restart() -> None:
        if wished is not None:
            player.current.restart(wished)

    def move_load(load: object) -> None:
        """Show the same market at another load at once."""
        set_control("load", str(load))
        settings, _ = read_form({**form, "load": typed(str(load)), "rounds": first["rounds"]})
        if settings is not None:
            player.current.restart(settings)
            if step is not None and (frame.playing or (frame.view is not None and frame.view.complete)):
                player.current.play(step.rounds)

    def play_or_pause() -> None:
        if frame.playing or frame.stepping:
            player.current.pause()
        elif step is not None:
            player.current.play(step.rounds)

    def choose(name: object) -> None:
        set_job(typed(name))
        player.current.choose(typed(name))

    solara.Title(f"{scenario.name} - marketsched")
    solara.Style(STYLE)
    with v.Html(tag="div", class_="ms-page"):
        Header(scenario.name, frame, play_or_pause, lambda: step and player.current.step(step.rounds))
        with v.Html(tag="div", class_="ms-body"):
            Controls(form, {**faults, **step_faults}, applied(frame, wished), set_control, restart, move_load)
            with v.Html(tag="main", class_="ms-main"):
                if frame.error:
                    v.Alert(type="error", dense=True, text=True, children=[frame.error], class_="ms-error")
                if frame.view is not None:
                    Market(shown)
                    Explanation(shown, job, choose)


@solara.component
def Layout(children: list[Any]) -> None:
    """Put nothing around the page."""
    v.Html(tag="div", class_="ms-layout", children=children)


@solara.component
def Header(name: str, frame: Frame, play_or_pause: Callable[[], None], step: Callable[[], None]) -> None:
    """Show the scenario, the state, and the button to continue."""
    idle = frame.view is None or frame.view.complete
    with v.Html(tag="header", class_="ms-header"):
        v.Html(tag="h1", children=["marketsched"])
        text(name, "ms-scenario")
        text(state(frame), "ms-state", key="state", role="status")
        word, icon = ("Pause", "mdi-pause") if frame.playing or frame.stepping else ("Play", "mdi-play")
        solara.Button(word, icon_name=icon, on_click=play_or_pause, disabled=idle, color="primary")
        solara.Button("Step", icon_name="mdi-skip-next", on_click=step, disabled=idle, outlined=True)
        solara.lab.ThemeToggle()


@solara.component
def Controls(
    form: Form,
    faults: dict[str, str],
    note: str,
    set_control: Callable[[str, object], None],
    restart: Callable[[], None],
    move_load: Callable[[object], None],
) -> None:
    """The settings of the next market; errors stand beside the illegal ones."""
    choices = {"mechanism": list(mechanism_names()), "lie": list(LIES)}
    wrong = [control for control in faults if control != "rounds"]
    with v.Html(tag="aside", class_="ms-controls"):
        for control, label in LABELS.items():
            label += f": {LIES[form['lie']].label}" if control == "amount" and form["lie"] in LIES else ""
            change, fault = (lambda value, own=control: set_control(own, value)), faults.get(control)
            if control in choices:
                errors = [] if fault is None else [fault]
                one_of(label, form[control], choices[control], change, error_messages=errors, hide_details="auto")
            else:
                written(label, form[control], change, fault, "the scenario's" if control == "capacity" else None)
            if control == "load":
                Slider(form["load"], move_load)
            if control == "seed":
                solara.Button("Apply and restart", on_click=restart, color="primary", block=True, disabled=bool(wrong))
                text("correct the red entries to start a market" if wrong else note, "ms-note", key="applied")


@solara.component
def Slider(load: str, moved: Callable[[object], None]) -> None:
    """Offer the load; ``moved`` hears it once it is let go."""
    low, high, step = LOADS
    with v.Html(tag="div", class_="ms-slider", attributes={"data-key": "load-slider"}):
        own = v.Slider(v_model=held(load, low, high), min=low, max=high, step=step, hide_details=True)
    v.use_event(own, "change", lambda widget, event, value: moved(value))


@solara.component
def Market(shown: ShownFrame) -> None:
    """Show the figures of the market."""
    view, figures = shown.frame.view, shown.figures
    assert view is not None
    with v.Html(tag="section", class_="ms-numbers"):
        for each in numbers(view):
            with v.Html(tag="div", class_="ms-number", attributes={"title": each.meaning}):
                text(each.label, "ms-label")
                text(each.value, "ms-value", key=each.key)
                text(each.beside, "ms-beside", key=f"{each.key}-beside")
    no_prices = "All slots cost the same so far."
    if view.surface is None:
        no_prices = f"The mechanism {view.mechanism} posts no prices by round."
    if not view.round:
        no_prices = "No round was played so far: press Step or Play."
    with v.Html(tag="section", class_="ms-grid"):
        panel("Load against capacity", "load", figures)
        panel("Prices, by current round and rounds ahead", "prices", figures, no_prices)
        rows = table(("", "welfare", "bound", "share"), bound_rows(view), "welfare-table")
        panel("Welfare against the bound on every schedule in hindsight", "welfare", figures, below=rows)
        rows = table(GROUPS, group_rows(view), "groups")
        panel("Utility of an average owner, by strategy", "utilities", figures, below=rows)


@solara.component
def Explanation(shown: ShownFrame, wanted: str, choose: Callable[[object], None]) -> None:
    """Say why a job was placed where it was."""
    frame, story = shown.frame, shown.frame.story
    assert frame.view is not None
    items = [{"text": f"{name}: {what}", "value": name} for name, what in frame.view.recent]
    if wanted and all(item["value"] != wanted for item in items):
        items.insert(0, {"text": wanted, "value": wanted})
    newest = [{"text": "the newest job that had a choice", "value": ""}]
    unknown = f"{frame.missing!r}: no job of this name was submitted so far" if frame.missing else None
    with v.Html(tag="section", class_="ms-panel ms-why"):
        heading("Why was this job placed where it was?", "why")
        with v.Html(tag="div", class_="ms-choose"):
            one_of("Recent jobs", wanted, newest + items, choose)
            written("or by name", wanted, choose, unknown)
        if story is None:
            text("No job was submitted so far: press Step or Play." if not items else "Choose a job.", "ms-note")
            return
        rows = start_rows(story)
        with v.Html(tag="div", class_="ms-story"):
            with v.Html(tag="div", class_="ms-tell", attributes={"data-key": "story"}):
                for sentence in sentences(story):
                    v.Html(tag="p", children=[sentence])
                html(shown.figures.get("story", ""), "ms-figure")
            starts = table(STARTS, [cells for _, cells in rows], "starts", [chosen for chosen, _ in rows])
            html(starts, "ms-table ms-starts")


def held(text: str, low: int, high: int) -> float:
    """Return the number in a control within the ends of its slider; the lower end if it holds none."""
    try:
        return min(max(float(text), low), high)
    except ValueError:
        return low


def typed(value: object) -> str:
    """Return the text of a control as sent by a browser, cut to a sensible length; empty if it is no text."""
    return value[:MOST_TYPED] if isinstance(value, str) else ""


def applied(frame: Frame, wished: Settings | None) -> str:
    """Say whether the market that is looked at has the settings of the controls; rounds per step are not of it."""
    if frame.building:
        return "being built ..."
    shown = frame.settings
    same = shown and wished and shown.model_copy(update={"rounds": wished.rounds}) == wished
    return "as applied" if same else "changed: not applied yet"


def panel(title: str, name: str, figures: dict[str, str], otherwise: str = "", below: str = "") -> None:
    """Show one figure under its title, or why there is none, and a table below."""
    with v.Html(tag="div", class_="ms-panel"):
        heading(title, name)
        if figures.get(name):
            html(figures[name], "ms-figure")
        else:
            text(otherwise, "ms-note")
        html(below, "ms-table")


def heading(title: str, name: str) -> None:
    """Write the name of a panel, and how to read it."""
    v.Html(tag="h2", children=[title])
    text(HELP[name], "ms-help")


def text(words: str, class_: str, *, key: str | None = None, **attributes: str) -> None:
    """Write a piece of text; with a key, where a test finds it."""
    if key:
        attributes["data-key"] = key
    v.Html(tag="div", class_=class_, children=[words], attributes=attributes)


def written(
    label: str, value: str, change: Callable[[object], None], fault: str | None, hint: str | None = None
) -> None:
    """Offer a line to write in. Every letter counts at once: on leaving, the last ones may still be under way."""
    more: dict[str, Any] = {"on_value": change, "error": fault or False, "placeholder": hint}
    solara.InputText(label, value, continuous_update=True, dense=True, **more)


def one_of(label: str, value: str, items: list[Any], change: Callable[[object], None], **more: Any) -> None:
    """Offer a choice."""
    v.Select(label=label, v_model=value, items=items, on_v_model=change, dense=True, **more)


def html(markup: str, class_: str) -> None:
    """Show one of our own figures or tables; nothing where there is none."""
    if markup:
        solara.HTML(tag="div", unsafe_innerHTML=markup, classes=class_.split())


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]], key: str, marked: list[bool] | None = None) -> str:
    """Return a table, its marked rows standing out, as text: a widget for each cell would take longer to show."""
    mark = marked or [False] * len(rows)
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in heads)
    body = "".join(
        ('<tr class="ms-chosen">' if chosen else "<tr>") + "".join(f"<td>{escape(x)}</td>" for x in row) + "</tr>"
        for row, chosen in zip(rows, mark, strict=True)
    )
    return f'<table data-key="{key}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
