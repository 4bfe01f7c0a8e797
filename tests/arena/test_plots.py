import re
import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from arena.plots import HEIGHT, LEFT, RIGHT, WIDTH, bars, legend, lines

values = st.lists(st.one_of(st.none(), st.floats(0, 1000)), min_size=1, max_size=30)


@given(values, st.sampled_from([None, 0.0]), st.sampled_from([None, 2000.0]))
def test_lines_stay_inside_and_leave_gaps(
    found: list[float | None], low: float | None, high: float | None
) -> None:
    svg = lines(list(range(len(found))), {"a<b": found}, y="x & y", low=low, high=high)
    root = ET.fromstring(svg)
    points = [
        pair.split(",") for line in root.findall(".//polyline") for pair in line.attrib["points"].split()
    ]
    marks = [(float(x), float(y)) for x, y in points]
    marks += [(float(c.attrib["cx"]), float(c.attrib["cy"])) for c in root.findall(".//circle")]
    assert len(marks) == sum(value is not None for value in found)
    assert all(LEFT <= x <= WIDTH - RIGHT + 0.1 and 0 <= y <= HEIGHT for x, y in marks)


def test_higher_is_higher_and_a_band_is_marked() -> None:
    svg = lines([0, 1], {"a": [0.2, 0.9]}, y="share", low=0, high=1, band=(0.35, 0.65))
    (line,) = re.findall(r'points="([^"]+)"', svg)
    (_, first), (_, last) = (pair.split(",") for pair in line.split())
    assert float(last) < float(first)
    assert "<rect" in svg


@given(st.lists(st.floats(0, 10_000), min_size=1, max_size=8))
def test_bars_have_the_heights_of_their_values(found: list[float]) -> None:
    root = ET.fromstring(bars([str(i) for i in range(len(found))], {"one": found, "two": found}, y="n"))
    heights = [float(rect.attrib["height"]) for rect in root.findall(".//rect")]
    assert len(heights) == 2 * len(found)
    assert heights[: len(found)] == heights[len(found) :]
    scale = max(heights) / max(found) if max(found) else 0.0
    assert all(abs(height - scale * value) < 0.2 for height, value in zip(heights, found, strict=False))


def test_a_legend_escapes_names() -> None:
    assert "&lt;b&gt;" in legend(["<b>"])


@given(st.floats(-1000, 1000), st.sampled_from([0.0, 1e-12, 1e-5, 1.0, 77.0]))
def test_each_tick_of_a_plot_has_its_own_short_label_and_place(value: float, spread: float) -> None:
    root = ET.fromstring(lines([1, 2], {"a": [value, value + spread]}, y="loss"))
    ticks = [text for text in root.findall(".//text") if text.attrib.get("text-anchor") == "end"][:-1]
    assert len({tick.text for tick in ticks}) == len({tick.attrib["y"] for tick in ticks}) == len(ticks) > 1


def test_what_does_not_change_is_not_blown_up() -> None:
    root = ET.fromstring(lines([1, 2], {"a": [0.174981, 0.175062]}, y="entropy"))
    (line,) = root.findall(".//polyline")
    heights = [float(pair.split(",")[1]) for pair in line.attrib["points"].split()]
    assert abs(heights[0] - heights[1]) < 10
