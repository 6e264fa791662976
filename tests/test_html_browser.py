"""The report in a real browser: its policy holds, charts are drawn on screens and on paper."""

import json

import pytest
from browser import MISSING, browser
from html_documents import all_documents

from hybridsim.show.html import of

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)

ISLAND = """
const island = (name) => {
  const text = atob(document.getElementById(name).textContent);
  const bytes = new Blob([Uint8Array.from(text, (letter) => letter.charCodeAt(0))]);
  return new Response(bytes.stream().pipeThrough(new DecompressionStream("deflate"))).json();
};
"""
# Pixels of each chart with exactly the colour of one of its lines.
COLOURED = """
return island("charts").then((charts) => {
const style = getComputedStyle(document.documentElement);
return [...document.querySelectorAll("canvas")].map((canvas, at) => {
  const colours = new Set(charts[at].lines.map(
    (line) => parseInt(style.getPropertyValue("--light" + line.colour).trim().slice(1), 16)));
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let i = 0; i < data.length; i += 4)
    found += data[i + 3] === 255 && colours.has((data[i] << 16) + (data[i + 1] << 8) + data[i + 2]);
  return found;
});
});
"""
STATE = """
return island("charts").then((charts) => ({
  drawn: Number(document.documentElement.dataset.drawn),
  canvases: document.querySelectorAll("canvas").length,
  charts: charts.length,
  hasVerdict: document.querySelector("h2").textContent,
  wide: document.documentElement.scrollWidth,
  alerts: document.querySelectorAll("img").length,
}));
"""
DRAWN = """
return new Promise((done) => {
  const look = () => (document.documentElement.dataset.drawn ? done() : setTimeout(look, 5));
  look();
});
"""


@pytest.fixture(scope="module")
def window():
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    files = {}
    for name, document in all_documents(folder).items():
        files[name] = folder / f"{name}.html"
        files[name].write_text(of(document, "hybridsim it"), encoding="utf-8")
    return files


def show(window, file, *how):
    """Open a report and wait until its charts are drawn."""
    window.open(file, *how)
    window.run(DRAWN)


@pytest.mark.parametrize("name", ["replay", "think", "no cache", "size", "bench", "compare"])
def test_every_chart_is_drawn_and_the_policy_blocks_nothing(name, window, reports):
    show(window, reports[name])
    state = window.run(ISLAND + STATE)
    assert state["drawn"] == state["canvases"] == state["charts"] > 0
    assert state["alerts"] == 0
    assert min(window.run(ISLAND + COLOURED)) > 20
    assert window.complaints() == []


@pytest.mark.parametrize("width", [1366, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_fits_laptops_and_phones_in_light_and_dark_mode(
    width, dark, window, reports, tmp_path
):
    show(window, reports["replay"], width, 844, dark)
    state = window.run(ISLAND + STATE)
    assert state["wide"] <= width
    assert state["drawn"] == state["charts"]
    ground = window.run("return getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
    window.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 30_000
    assert window.complaints() == []


def test_the_policy_blocks_other_scripts(window, reports):
    show(window, reports["replay"])
    window.run(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        "document.body.append(s);"
    )
    assert window.run("return window.ran === undefined") is True
    assert any("Content Security Policy" in each for each in window.complaints())


def test_hovering_over_one_panel_shows_the_values_of_all_panels(window, reports):
    show(window, reports["replay"])
    values = window.run("""
        const over = document.querySelector("#chart-hit-ratio .u-over");
        const box = over.getBoundingClientRect();
        const at = { clientX: box.left + box.width / 2, clientY: box.top + 20, bubbles: true };
        over.dispatchEvent(new MouseEvent("mouseenter", at));
        over.dispatchEvent(new MouseEvent("mousemove", at));
        return new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(
            ["hit-ratio", "latency", "occupancy"].map((name) =>
              document.querySelector(`#chart-${name} .u-legend .u-value`).textContent)), 50)));
    """)
    assert len(set(values)) == 1
    assert values[0].endswith("s")


def test_dragging_zooms_all_panels_and_a_double_click_resets(window, reports):
    show(window, reports["replay"])
    before, closer, after = window.run("""
        const panels = [...document.querySelectorAll("#chart-hit-ratio, #chart-occupancy")];
        const over = panels[0].querySelector(".u-over");
        const box = over.getBoundingClientRect();
        const at = (share) => ({ clientX: box.left + share * box.width, clientY: box.top + 20,
          bubbles: true, button: 0, movementX: 5 });
        const send = (to, kind, share) => to.dispatchEvent(new MouseEvent(kind, at(share)));
        const wait = () => new Promise((done) => setTimeout(done, 200));
        const shown = () => panels.map((each) => each.querySelector("canvas").toDataURL());
        return (async () => {
          const before = shown();
          send(over, "mouseenter", 0.2); send(over, "mousemove", 0.2); send(over, "mousedown", 0.2);
          await wait();
          send(over, "mousemove", 0.4); send(over, "mousemove", 0.6);
          send(document, "mouseup", 0.6);
          await wait();
          const closer = shown();
          send(over, "dblclick", 0.5);
          await wait();
          return [before, closer, shown()];
        })();
    """)
    assert all(one != other for one, other in zip(before, closer))
    assert before == after


def test_the_copy_button_copies_the_json_output(window, reports):
    show(window, reports["replay"])
    copied = window.run("""
        let text = "";
        navigator.clipboard.writeText = async (copied) => { text = copied; };
        document.getElementById("copy").click();
        return new Promise((done) => setTimeout(() => done(text), 50));
    """)
    assert json.loads(copied) == window.run(ISLAND + "return island('result')")


def test_the_button_leads_to_the_command_of_the_explorer_which_can_be_copied(window, reports):
    show(window, reports["replay"], 390, 844)
    window.run("document.querySelector('a.button').click()")
    state = window.run("""
        let text = "";
        navigator.clipboard.writeText = async (copied) => { text = copied; };
        const block = document.querySelector("#explore .command");
        const box = block.getBoundingClientRect();
        block.querySelector("button").click();
        return new Promise((done) => setTimeout(() => done({
          text, shown: block.querySelector("pre").textContent, seen: box.top < innerHeight,
          hidden: block.querySelector("button").hidden, at: location.hash,
          status: block.querySelector("[role=status]").textContent,
          wide: document.documentElement.scrollWidth,
        }), 50));
    """)
    assert state["text"] == state["shown"]
    assert state["text"].startswith("hybridsim explore ")
    assert state["text"].endswith(" -o what-if.html")
    assert (state["status"], state["at"], state["hidden"]) == ("copied", "#explore", False)
    assert state["seen"]
    assert state["wide"] <= 390
    assert window.complaints() == []


def test_printing_uses_the_svg_pictures(window, reports, tmp_path):
    show(window, reports["replay"])
    window.devtools("Emulation.setEmulatedMedia", media="print")
    shown = window.run(
        "return [...document.querySelectorAll('.still')].map((each) => each.offsetHeight > 50)"
    )
    hidden = window.run("return document.querySelector('.plot').offsetHeight")
    window.devtools("Emulation.setEmulatedMedia", media="")
    assert all(shown)
    assert hidden == 0
    window.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


def test_without_scripts_the_svg_pictures_are_shown(window, reports):
    window.devtools("Emulation.setScriptExecutionDisabled", value=True)
    try:
        window.open(reports["replay"])
    finally:
        window.devtools("Emulation.setScriptExecutionDisabled", value=False)
    assert window.run("return document.querySelectorAll('canvas').length") == 0
    assert window.run("return document.querySelector('.still svg').clientHeight") > 50
