// usage: node browser.js CHROMIUM FOLDER PAGE...
// Opens each page at 390, 768, 1280 and 1920 px, light and dark, clicks what can be clicked, and fails for errors of the
// console, requests to anywhere, text wider than the window, text over text or outside of its picture, or content that
// moves. Screenshots go to FOLDER.
const [chromium, folder, ...pages] = process.argv.slice(2);
const path = require("path");
const { chromium: driver } = require(process.env.WARPWRIGHT_PLAYWRIGHT || "playwright-core");

const wrong = [];
const hold = (is, what) => is || wrong.push(what);

// Texts that lie over each other, and texts of a picture that lie outside of it, as far as they are to be seen.
function clashes() {
  const found = [];
  const name = (text) => JSON.stringify(text.slice(0, 40));
  for (const picture of document.querySelectorAll("svg")) {
    const frame = picture.getBoundingClientRect();
    const texts = [...picture.querySelectorAll("text")].filter((e) => e.getClientRects().length);
    for (const e of texts) {
      const box = e.getBoundingClientRect();
      const is = box.left >= frame.left - 1 && box.right <= frame.right + 1 && box.top >= frame.top - 1
        && box.bottom <= frame.bottom + 1;
      if (!is) found.push(`${name(e.textContent)} lies outside of its picture`);
    }
  }
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const boxes = [];
  // What a frame cuts off is not to be seen.
  const seen = (node, box) => {
    let { left, right, top, bottom } = box;
    for (let e = node.parentElement; e; e = e.parentElement) {
      const style = getComputedStyle(e);
      if (style.overflowX === "visible" && style.overflowY === "visible") continue;
      const frame = e.getBoundingClientRect();
      [left, right] = [Math.max(left, frame.left), Math.min(right, frame.right)];
      [top, bottom] = [Math.max(top, frame.top), Math.min(bottom, frame.bottom)];
    }
    return { left, right, top, bottom };
  };
  for (let node = walker.nextNode(); node && boxes.length < 4000; node = walker.nextNode()) {
    if (!node.textContent.trim() || !node.parentElement.checkVisibility()) continue;
    // Names of columns stand on end, closer than their lines are high.
    if (node.parentElement.closest(".v")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) {
      const box = seen(node, rect);
      if (box.right - box.left > 1 && box.bottom - box.top > 1) boxes.push([node, box]);
    }
  }
  boxes.sort((a, b) => a[1].top - b[1].top);
  boxes.forEach(([node, a], at) => {
    for (let next = at + 1; next < boxes.length && boxes[next][1].top < a.bottom - 4; ++next) {
      const [other, b] = boxes[next];
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (node !== other && wide > 2 && high > 5)
        found.push(`${name(node.textContent)} lies over ${name(other.textContent)}`);
    }
  });
  return found.slice(0, 8);
}

(async () => {
  const browser = await driver.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  for (const file of pages)
    for (const [width, colorScheme] of [[1280, "light"], [390, "dark"], [768, "light"], [1920, "dark"]]) {
      const name = `${path.basename(file, ".html")} at ${width} px`;
      const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
      page.on("console", (said) => wrong.push(`${name}: ${said.text()}`));
      page.on("pageerror", (error) => wrong.push(`${name}: ${error}`));
      page.on("request", (r) => hold(r.url().startsWith("file:"), `${name} asks for ${r.url()}`));
      await page.goto("file://" + path.resolve(file));
      const shifts = await page.evaluate(
        () => new Promise((done) => {
          let sum = 0;
          new PerformanceObserver((list) => list.getEntries().forEach((e) => (sum += e.value))).observe({
            type: "layout-shift", buffered: true });
          setTimeout(() => done(sum), 200);
        }));
      hold(shifts === 0, `${name}: its layout shifts by ${shifts}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      hold(wide <= 0, `${name}: ${wide} px wider than the window`);
      for (const what of await page.evaluate(clashes)) wrong.push(`${name}: ${what}`);
      await page.screenshot({ path: path.join(folder, name.replaceAll(" ", "-") + ".png"), fullPage: true });
      // The words open with a click and close with a key.
      const words = page.locator("summary").last();
      const isOpen = () => page.locator("details").last().evaluate((e) => e.open);
      await words.click();
      hold(await isOpen(), `${name}: a click does not open the words`);
      hold(await page.locator("dt").first().isVisible(), `${name}: no word is seen`);
      await words.press("Enter");
      hold(!(await isOpen()), `${name}: a key does not close the words`);
      // Each link leads to its kernel.
      for (const link of await page.locator("nav a").all()) {
        await link.click();
        const target = page.locator(new URL(await page.url()).hash);
        const top = (await target.boundingBox()).y;
        const height = await page.evaluate(() => innerHeight);
        hold(top >= -1 && top < height, `${name}: a link does not lead to its kernel`);
      }
      // So do the peak of a curve and the lines of the source, by a key.
      for (const link of await page.locator("svg.curve a, table a").all()) {
        await link.focus();
        await page.keyboard.press("Enter");
        const top = (await page.locator(new URL(await page.url()).hash).boundingBox()).y;
        hold(top >= -1 && top < 900, `${name}: ${await link.getAttribute("href")} leads nowhere`);
      }
      // A row of the source marks what was made of it; so does the next one, by a key; an instruction the one it was made of.
      for (const box of await page.locator(".listing").all()) {
        // Its first line stands in the column of the text, open or not.
        const column = await page.locator("h1").evaluate((e) => e.getBoundingClientRect().left);
        for (const _ of [0, 1]) {
          const left = (await box.locator("summary").first().boundingBox()).x;
          hold(left === column, `${name}: the listing's first line stands at ${left}, the text at ${column}`);
          await box.locator("summary").first().click();
        }
        if (!(await box.evaluate((e) => e.open))) await box.locator("summary").first().click();
        // Of much code the source alone is seen at first.
        const folded = box.locator(".pane:not([open]) > summary");
        for (const count = await folded.count(); await folded.count(); ) {
          await folded.first().press("Enter");
          if (await folded.count() === count) { wrong.push(`${name}: a key does not open a pane`); break; }
        }
        // The rows of each pane that belong to the chosen one exactly, else those of its line.
        const marked = () => box.evaluate((e) => [...e.querySelectorAll("ol")].map((pane) => {
          const are = (name) => [...pane.children].flatMap((row, at) => (row.classList.contains(name) ? [at] : []));
          return are("on").length ? are("on") : are("near");
        }));
        const isSeen = (pane) => pane.evaluate((e) => {
          const row = document.getElementById(e.getAttribute("aria-activedescendant"));
          const [inner, outer] = [row.getBoundingClientRect(), e.getBoundingClientRect()];
          return inner.top >= outer.top && inner.bottom <= outer.bottom && row.getAttribute("aria-selected") === "true";
        });
        const expect = async (expected, what) => {
          const found = JSON.stringify(await marked());
          hold(found === JSON.stringify(expected), `${name}: ${what} marks ${found}`);
          for (const pane of await box.locator("ol").all()) hold(await isSeen(pane), `${name}: ${what}: a row is out of sight`);
        };
        const [source, ptx, code] = await box.locator("ol").all();
        const before = await page.evaluate(() => document.body.scrollHeight);
        await source.locator("li").nth(1).click({ position: { x: 60, y: 5 } });
        await expect([[1], [300, 301], [200]], "a click");
        await source.press("ArrowUp");
        await expect([[0], [0, 1, 2], [3, 399]], "a key");
        await code.focus();
        await page.keyboard.press("Home");
        await expect([[2], [350], [0]], "the first instruction");
        await ptx.press("End");
        const last = (await ptx.locator("li").count()) - 1;
        await expect([[2], [last], [1, 2]], "the last instruction");
        const said = await box.locator("[role=status]").textContent();
        hold(said.includes("k.cu:5"), `${name}: ${said}`);
        hold((await page.evaluate(() => document.body.scrollHeight)) === before, `${name}: choosing moves what is below`);
        // A pane that is folded leaves its room to the others.
        const wide = async () => (await code.boundingBox()).width;
        const narrow = await wide();
        await box.locator(".pane > summary").first().click();
        hold(width < 960 || (await wide()) > 1.2 * narrow, `${name}: a folded pane keeps its room`);
        await box.locator(".pane > summary").first().press("Enter");
      }
      // On paper (720 px are the width of a page of A4) nothing is cut off.
      await page.emulateMedia({ media: "print" });
      await page.setViewportSize({ width: 720, height: 1000 });
      const cut = await page.evaluate(() => Math.max(...[document.documentElement, ...document.querySelectorAll(".wide")]
        .map((e) => e.scrollWidth - e.clientWidth)));
      hold(cut <= 0, `${name}: ${cut} px are cut off on paper`);
      await page.emulateMedia({ media: "screen" });
      await page.setViewportSize({ width, height: 900 });
      // Every table that is wider than its frame can be reached and moved by keys.
      for (const frame of await page.locator(".wide").all()) {
        await frame.focus();
        await page.keyboard.press("ArrowRight");
        const isReached = await frame.evaluate((e) => document.activeElement === e);
        hold(isReached, `${name}: a table is not reached by keys`);
      }
      await page.close();
    }
  await browser.close();
  if (wrong.length) {
    console.error(wrong.join("\n"));
    process.exit(1);
  }
})().catch((error) => { console.error(String(error)); process.exit(1); });
