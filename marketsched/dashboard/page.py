"""The dashboard's page: the view of a player in a browser. The only file that needs the extra ``viz``.

Every visitor gets a player of their own, which ends with the visit. The page holds no market logic:
it shows the newest `Frame`, and hands the visitor's wishes to the `Player`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
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
from marketsched.dashboard.figures import Pictures, pictures
from marketsched.dashboard.player import Frame, Player
from marketsched.dashboard.settings import Form, Settings, first_form, read_form
from marketsched.mechanisms.registry import mechanism_names

MOST_TYPED = 200  # characters
LOADS = (20, 300, 10)  # per cent: lowest and highest on the slider, and its step


@dataclass
class Serving:
    """The served scenario and settings: set once, before the first visitor."""

    scenario: Scenario | None = None
    seed: int = 0
    data: Path | None = None
    playing: bool = False  # as soon as a visitor's market is there


@dataclass(frozen=True)
class ShownFrame:
    """A frame, and its figures."""

    frame: Frame = field(default_factory=Frame)
    figures: Pictures = field(default_factory=Pictures)


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
    wanted_job, set_wanted_job = solara.use_state("")
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
    _, step_faults = read_form({**first, "rounds": form["rounds"]})
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
        moved = {**form, "load": typed(str(load)), "rounds": first["rounds"]}
        set_control("load", moved["load"])
        settings, _ = read_form(moved)
        if settings is not None:
            player.current.restart(settings)
            ended = frame.view is not None and frame.view.complete
            if (frame.playing or ended) and (n := rounds()) is not None:
                player.current.play(n)

    def rounds() -> int | None:
        settings, _ = read_form({**first, "rounds": form["rounds"]})  # other controls may be half typed
        return None if settings is None else settings.rounds

    def step() -> None:
        if (n := rounds()) is not None:
            player.current.step(n)

    def play_or_pause() -> None:
        if frame.playing or frame.stepping:
            player.current.pause()
        elif (n := rounds()) is not None:
            player.current.play(n)

    def choose(job: object) -> None:
        set_wanted_job(typed(job))
        player.current.choose(typed(job))

    solara.Title(f"{scenario.name} - marketsched")
    solara.Style(STYLE)
    with v.Html(tag="div", class_="ms-page"):
        Header(scenario.name, frame, play_or_pause, step)
        with v.Html(tag="div", class_="ms-body"):
            Controls(form, {**faults, **step_faults}, applied(frame, wished), set_control, restart, move_load)
            with v.Html(tag="main", class_="ms-main"):
                Trouble(frame.error)
                Market(shown)
                Explanation(shown, wanted_job, choose)


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

    def entry(control: str, label: str, placeholder: str | None = None) -> None:
        written(
            label,
            form[control],
            on_value=lambda value: set_control(control, value),
            error=faults.get(control, False),
            placeholder=placeholder,
        )

    def choice(control: str, label: str, items: list[str]) -> None:
        v.Select(
            label=label,
            v_model=form[control],
            items=items,
            on_v_model=lambda value: set_control(control, value),
            error_messages=[faults[control]] if control in faults else [],
            dense=True,
            hide_details="auto",
        )

    with v.Html(tag="aside", class_="ms-controls"):
        choice("mechanism", "Mechanism", list(mechanism_names()))
        entry("capacity", "Capacity, nodes", "the scenario's")
        entry("load", "Load, % of the scenario's jobs")
        Slider("load", form["load"], LOADS, move_load)
        entry("liars", "Owners who lie, %")
        choice("lie", "How they lie", list(LIES))
        entry("amount", f"By how much: {LIES[form['lie']].label}" if form["lie"] in LIES else "By how much")
        entry("seed", "Seed")
        wrong = [x for x in faults if x != "rounds"]
        solara.Button("Apply and restart", on_click=restart, color="primary", block=True, disabled=bool(wrong))
        if wrong:
            text("correct the red entries to start a market", "ms-note")
        else:
            text(note, "ms-note", key="applied")
        entry("rounds", "Rounds per step")


@solara.component
def Slider(control: str, text: str, legal: tuple[int, int, int], moved: Callable[[object], None]) -> None:
    """Offer the number in a control, from lowest to highest by steps; ``moved`` hears it once it is let go."""
    low, high, step = legal
    with v.Html(tag="div", class_="ms-slider", attributes={"data-key": f"{control}-slider"}):
        own = v.Slider(v_model=held(text, low, high), min=low, max=high, step=step, hide_details=True)
    v.use_event(own, "change", lambda widget, event, value: moved(value))


@solara.component
def Trouble(error: str) -> None:
    """Say why the last request came to nothing."""
    if error:
        v.Alert(type="error", dense=True, text=True, children=[error], class_="ms-error")


@solara.component
def Market(shown: ShownFrame) -> None:
    """Show the figures of the market."""
    view = shown.frame.view
    if view is None:
        return
    with v.Html(tag="section", class_="ms-numbers"):
        for each in numbers(view):
            with v.Html(tag="div", class_="ms-number", attributes={"title": each.meaning}):
                text(each.label, "ms-label")
                text(each.value, "ms-value", key=each.key)
                text(each.beside, "ms-beside", key=f"{each.key}-beside")
    figures = shown.figures
    with v.Html(tag="section", class_="ms-grid"):
        Panel("Load against capacity", "load", figures.load)
        if not view.round:
            otherwise = "No round was played so far: press Step or Play."
        elif view.surface is None:
            otherwise = f"The mechanism {view.mechanism} posts no prices by round."
        else:
            otherwise = "All slots cost the same so far."
        Panel("Prices, by current round and rounds ahead", "prices", figures.prices, otherwise)
        with v.Html(tag="div", class_="ms-panel"):
            heading("Welfare against the bound on every schedule in hindsight", "welfare")
            picture(figures.welfare)
            table(("", "welfare", "bound", "share"), bound_rows(view), "welfare-table")
        with v.Html(tag="div", class_="ms-panel"):
            heading("Utility of an average owner, by strategy", "utilities")
            picture(figures.utilities)
            table(("strategy", "owners", "jobs", "completed", "credits per owner"), group_rows(view), "groups")


@solara.component
def Panel(title: str, name: str, figure: str, otherwise: str = "") -> None:
    """Show one figure under its title, or why there is none."""
    with v.Html(tag="div", class_="ms-panel"):
        heading(title, name)
        if figure:
            picture(figure)
        else:
            text(otherwise, "ms-note")


@solara.component
def Explanation(shown: ShownFrame, wanted: str, choose: Callable[[object], None]) -> None:
    """Say why a job was placed where it was."""
    frame, story = shown.frame, shown.frame.story
    if frame.view is None:
        return
    items = [{"text": f"{name}: {what}", "value": name} for name, what in frame.view.recent]
    if wanted and all(item["value"] != wanted for item in items):
        items.insert(0, {"text": wanted, "value": wanted})
    with v.Html(tag="section", class_="ms-panel ms-why"):
        heading("Why was this job placed where it was?", "why")
        with v.Html(tag="div", class_="ms-choose"):
            newest = [{"text": "the newest job that had a choice", "value": ""}]
            v.Select(label="Recent jobs", v_model=wanted, items=newest + items, on_v_model=choose, dense=True)
            unknown = f"{frame.missing!r}: no job of this name was submitted so far" if frame.missing else False
            written("or by name", wanted, on_value=choose, error=unknown)
        if story is None:
            text("No job was submitted so far: press Step or Play." if not items else "Choose a job.", "ms-note")
            return
        with v.Html(tag="div", class_="ms-story"):
            with v.Html(tag="div", class_="ms-tell", attributes={"data-key": "story"}):
                for sentence in sentences(story):
                    v.Html(tag="p", children=[sentence])
                picture(shown.figures.story)
            rows = start_rows(story)
            heads = ("start", "value", "price", "failure", "expected surplus")
            table(heads, [cells for _, cells in rows], "starts", [chosen for chosen, _ in rows])


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
    shown = None if frame.settings is None or wished is None else replace(frame.settings, rounds=wished.rounds)
    return "as applied" if shown is not None and shown == wished else "changed: not applied yet"


def heading(title: str, name: str) -> None:
    """Write the name of a panel, and how to read it."""
    v.Html(tag="h2", children=[title])
    text(HELP[name], "ms-help")


def text(words: str, class_: str, *, key: str | None = None, **attributes: str) -> None:
    """Write a piece of text; with a key, where a test finds it."""
    if key:
        attributes["data-key"] = key
    v.Html(tag="div", class_=class_, children=[words], attributes=attributes)


def written(label: str, value: str, **rest: Any) -> None:
    """Offer a line to write in. Every letter counts at once: on leaving, the last ones may still be under way."""
    solara.InputText(label, value, continuous_update=True, dense=True, **rest)


def picture(svg: str) -> None:
    """Show one of our own figures."""
    if svg:
        solara.HTML(tag="div", unsafe_innerHTML=svg, classes=["ms-figure"])


def table(heads: tuple[str, ...], rows: list[tuple[str, ...]], key: str, marked: list[bool] | None = None) -> None:
    """Write a table; marked rows stand out. One element in all: a widget for each cell would take longer to show."""
    mark = marked or [False] * len(rows)
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in heads)
    body = "".join(
        ('<tr class="ms-chosen">' if chosen else "<tr>") + "".join(f"<td>{escape(x)}</td>" for x in row) + "</tr>"
        for row, chosen in zip(rows, mark, strict=True)
    )
    solara.HTML(
        tag="div",
        unsafe_innerHTML=f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>",
        classes=["ms-table", f"ms-{key}"],
        attributes={"data-key": key},
    )
