"""A headless Chromium and pages of synthetic reports. Without Chromium the tests are deferred, with the reason."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from synthetic_report import EDGES, report, stages
from synthetic_stages import plan_stage, speed_stage

from tqforge.report.judge.budget import advise
from tqforge.report.render import html, models_page

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1280,1000",
)


class Browser:
    """What the tests ask of Chromium, over its DevTools protocol."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, *, dark: bool = False, width: int = 1280) -> None:
        self.driver.get("about:blank")
        self.events()
        self.driver.get_log("browser")
        self.tell(
            "Emulation.setEmulatedMedia",
            media="",
            features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}],
        )
        self.tell(
            "Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=width < 600
        )
        self.driver.get(page.as_uri())

    def tell(self, command: str, **values: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, values)

    def ask(self, script: str, *values: Any) -> Any:
        return self.driver.execute_script(script, *values)

    def click(self, selector: str) -> None:
        self.driver.find_element("css selector", selector).click()

    def console(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]

    def requests(self) -> list[str]:
        return [e["params"]["request"]["url"] for e in self.events() if e["method"] == "Network.requestWillBeSent"]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    driver_path = shutil.which("chromedriver")
    if not binary or not driver_path:
        pytest.skip("deferred: there is no Chromium with its driver here (Debian: chromium, chromium-driver)")
    webdriver = pytest.importorskip("selenium.webdriver", reason="deferred: selenium is not installed (extra: browser)")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*_FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_path))
    try:
        yield Browser(driver)
    finally:
        driver.quit()


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a synthetic report by its name in EDGES, or `whole` (every section at once), or `models` (two)."""
    folder = tmp_path_factory.mktemp("pages")

    def make(name: str) -> Path:
        path = folder / f"{name.replace(' ', '-')}.html"
        if not path.exists():
            whole = advise(report(stages=(*stages(), plan_stage(), speed_stage())))
            if name == "models":
                text = models_page.render([("one.html", whole), ("two.html", EDGES["one pair"]())])
            else:
                text = html.render(whole if name == "whole" else EDGES[name]())
            path.write_text(text, encoding="utf-8")
        return path

    return make
