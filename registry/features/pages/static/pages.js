// Pages work without this script.

// Copies the text of the element that a button names; the button is hidden until this runs.
for (const button of document.querySelectorAll("button[data-copies]")) {
  button.hidden = !navigator.clipboard;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).textContent);
    button.textContent = "Copied";
  });
}

// What was pasted before the scripts ran is judged like what is typed later. htmx begins to listen in a timer, set before.
setTimeout(() => {
  for (const text of document.querySelectorAll("form[hx-post] textarea")) {
    if (text.value !== text.defaultValue) text.dispatchEvent(new Event("input", { bubbles: true }));
  }
});
