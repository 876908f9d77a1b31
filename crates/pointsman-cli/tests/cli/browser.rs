//! The report's page in a browser: sliders moved, another loss chosen, a cell pointed at.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::line;

/// What a reader would do, and what the page says after each step.
const READER: &str = r##"<script>
addEventListener("load", () => {
  const seen = {}, $ = (id) => document.getElementById(id);
  const look = (name) => { seen[name] = { money: $("headline").textContent + $("shares-line").textContent + $("money").textContent, cell: $("cell").textContent,
    shares: $("shares").textContent, dots: document.querySelectorAll("#landscape circle").length }; };
  const move = (id, value) => { $(id).value = value; $(id).dispatchEvent(new Event("input", { bubbles: true })); };
  const complaints = [];
  addEventListener("error", (event) => complaints.push(event.message));
  look("start");
  move("route", 0); look("free");
  move("route", $("route").max); move("abstain", $("abstain").max); look("never");
  $("loss").selectedIndex = $("loss").options.length - 1;
  $("loss").dispatchEvent(new Event("change", { bubbles: true })); look("loss");
  const dots = document.querySelectorAll("#landscape circle");
  for (const dot of [dots[0], dots[dots.length - 1]]) {
    dot.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    look("cell" + Object.keys(seen).length);
  }
  $("reset").click(); look("reset");
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = JSON.stringify({ seen, complaints });
  document.body.append(result);
});
</script></body>"##;

/// A browser; `None`, after [`pointsman_testing::skip`], if there is none.
pub(crate) fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("CHROME").map(PathBuf::from);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let found = std::env::split_paths(&paths)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|path| path.is_file());
    let browser = named.or(found);
    if browser.is_none() {
        pointsman_testing::skip("no Chromium found: install it, or set CHROME to a browser, to test the report's page");
    }
    browser
}

/// Loads a page whose script writes JSON into an element `result`, and gives that.
pub(crate) fn text_after(browser: &Path, folder: &Path, page: &str) -> Value {
    let tried = folder.join("tried.html");
    fs::write(&tried, page).unwrap();
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
        .args(["--disable-component-update", "--disable-sync", "--disable-quic", "--virtual-time-budget=10000"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", tried.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let result = dom
        .split("<pre id=\"result\">")
        .last()
        .filter(|_| dom.contains("<pre id=\"result\">"))
        .unwrap_or_else(|| panic!("the page stopped: {dom:.2000}"));
    let text = result.split("</pre>").next().unwrap().replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&text).unwrap()
}

/// The same as a window of this width sees it: browsers without a screen have no windows so narrow, but frames.
pub(crate) fn text_in_window(browser: &Path, folder: &Path, page: &str, width: u32) -> Value {
    let inside = page.replace('&', "&amp;").replace('"', "&quot;");
    let frame = format!(
        r##"<!DOCTYPE html><body><iframe id="frame" style="width:{width}px;height:800px;border:0" srcdoc="{inside}"></iframe><script>
        addEventListener("load", () => document.body.append(document.getElementById("frame").contentDocument.getElementById("result")));
        </script></body>"##
    );
    text_after(browser, folder, &frame)
}

#[test]
fn page_responds_to_sliders_and_losses() {
    let Some(browser) = browser() else { return };
    let folder = TempDir::new().unwrap();
    line(folder.path(), "demo -o world --rows 2000").ok();
    let page = fs::read_to_string(folder.path().join("world/report.html")).unwrap();
    assert_eq!(page.matches("</body>").count(), 1);
    let result = text_after(&browser, folder.path(), &page.replace("</body>", READER));
    assert_eq!(result["complaints"], Value::Array(Vec::new()));
    let seen = |step: &str, what: &str| result["seen"][step][what].clone();
    assert!(seen("start", "money").as_str().unwrap().contains("predicted"), "{result}");
    assert!(seen("start", "dots").as_u64().unwrap() >= 20, "{result}");
    // Free routing, no routing and another loss each change the texts; resetting restores the prices.
    assert_ne!(seen("start", "money"), seen("free", "money"));
    assert_ne!(seen("free", "shares"), seen("never", "shares"));
    assert!(
        seen("never", "money").as_str().unwrap().contains("100"),
        "with nothing else allowed all is predicted: {result}"
    );
    assert_ne!(seen("never", "money"), seen("loss", "money"));
    assert_ne!(seen("cell4", "cell"), seen("cell5", "cell"), "another cell has other words");
    assert_ne!(seen("reset", "money"), seen("never", "money"));
}
