// Draw the mermaid diagrams of a page. Without mermaid.min.js, for example if npm was not available, they stay text.
document.addEventListener("DOMContentLoaded", () => {
  if (typeof mermaid === "undefined") return;
  for (const block of document.querySelectorAll(".highlight-mermaid")) {
    const diagram = document.createElement("pre");
    diagram.className = "mermaid";
    diagram.textContent = block.querySelector("pre").textContent;
    block.replaceWith(diagram);
  }
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  mermaid.initialize({ startOnLoad: false, theme: dark ? "dark" : "default", securityLevel: "strict" });
  mermaid.run();
});
