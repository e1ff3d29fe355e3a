// Name, for those who hear the page, what the theme leaves unnamed or names otherwise than it shows.
const text = (element) => element.textContent.replace(/\s+/g, " ").trim();

// After "load", because the theme changes the keys that it shows to those of the machine.
window.addEventListener("load", () => {
  for (const button of document.querySelectorAll(".search-button-field")) {
    button.setAttribute("aria-label", text(button));
  }
  for (const summary of document.querySelectorAll("li > a.reference ~ details > summary")) {
    const link = summary.closest("li").querySelector("a.reference");
    summary.setAttribute("aria-label", `Pages under ${text(link)}`);
  }
  // An entry of a bibliography is an item of a list; its older role is not allowed in one.
  for (const entry of document.querySelectorAll("[role=doc-biblioentry]")) {
    entry.setAttribute("role", "listitem");
  }
});
