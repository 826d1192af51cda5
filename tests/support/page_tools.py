"""What tests of the dashboard do with a page in a browser: find, press, write, choose, and look at colours."""

import re


def at(page, key):
    """Return the piece of text of that key."""
    return page.locator(f"[data-key='{key}']")


def press(page, name):
    """Press a button."""
    page.get_by_role("button", name=name, exact=True).click()


def write(page, control, text):
    """Write into a control, and leave it."""
    box = page.get_by_role("textbox", name=control)
    box.fill(text)
    box.press("Tab")


def choose(page, control, item):
    """Choose from a list."""
    page.locator(".ms-controls .v-select", has_text=control).click()
    page.locator(".menuable__content__active .v-list-item", has_text=re.compile(f"^{item}$")).click()


def colour(place) -> str:
    """Return the colour of a text."""
    return place.evaluate("x => getComputedStyle(x).color")


def brightness(colour: str) -> float:
    """Return the relative luminance of ``rgb(...)``, from 0 to 1."""
    parts = [float(x) / 255 for x in re.findall(r"[\d.]+", colour)[:3]]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)
