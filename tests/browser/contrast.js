// Every visible text of the page with its contrast against what lies behind it; returns those below the bound of WCAG AA.
const parse = (text) => {
  const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
  return { rgb: [r, g, b], a };
};
const light = (rgb) => {
  const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (node) => {
  for (let at = node; at; at = at.parentElement) {
    const { rgb, a } = parse(getComputedStyle(at).backgroundColor);
    if (a > 0.99) return rgb;
  }
  return [255, 255, 255];
};
const poor = [];
let seen = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.textContent.trim();
  const node = walker.currentNode.parentElement;
  if (!text || ["TITLE", "DESC", "STYLE"].includes(node.tagName.toUpperCase())) continue;
  const box = node.getBoundingClientRect();
  const style = getComputedStyle(node);
  if (!box.width || !box.height || style.visibility === "hidden" || style.clipPath !== "none") continue;
  const svg = node instanceof SVGElement;
  const ink = parse(svg ? style.fill : style.color).rgb;
  const [low, high] = [light(ink), light(behind(node))].sort((a, b) => a - b);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.5 && parseInt(style.fontWeight) >= 700);
  const ratio = (high + 0.05) / (low + 0.05);
  seen += 1;
  if (ratio < (large ? 3 : 4.5)) poor.push(`${ratio.toFixed(2)} ${node.tagName} ${node.className?.baseVal ?? node.className}: ${text.slice(0, 40)}`);
}
return { seen, poor };
