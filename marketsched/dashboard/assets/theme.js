// Light or dark as the browser prefers, until the visitor chooses. The framework's own setting for that ("auto")
// leaves out the element the page lives in, so the page is served as light and told here, before it is drawn.
// This stands in for a script of the framework that names the colours of its themes: its own.
vuetifyThemes = { light: { dark: false, colors: {} }, dark: { dark: true, colors: {} } };
if (!localStorage.getItem(':solara:theme.variant')) {
  theme.variant = 'auto';
  appContainer.classList.toggle('theme--dark', prefersDarkScheme());
  appContainer.classList.toggle('theme--light', !prefersDarkScheme());
}
