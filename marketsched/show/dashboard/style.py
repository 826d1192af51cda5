"""How the dashboard looks: a column of controls, and panels two by two on a laptop's screen."""

# Light or dark as the browser prefers, until the visitor chooses. The framework's own setting for that ("auto")
# leaves out the element the page lives in, so the page is served as light and told here, before it is drawn.
# It stands in for a script of the framework that names the colours of its themes: its own.
THEME_SCRIPT = """
vuetifyThemes = { light: { dark: false, colors: {} }, dark: { dark: true, colors: {} } };
if (!localStorage.getItem(':solara:theme.variant')) {
  theme.variant = 'auto';
  appContainer.classList.toggle('theme--dark', prefersDarkScheme());
  appContainer.classList.toggle('theme--light', !prefersDarkScheme());
}
"""

STYLE = """
.ms-page { font-size: 14px; line-height: 1.35; }
.ms-header { display: flex; align-items: center; gap: 12px; padding: 8px 16px; position: sticky; top: 0; z-index: 5;
  border-bottom: 1px solid rgba(128, 128, 128, .35); background: #ffffff; }
.theme--dark .ms-header { background: #121212; }
.ms-header h1 { font-size: 18px; font-weight: 600; letter-spacing: .01em; }
.ms-scenario { opacity: .75; }
.ms-state { margin-left: auto; opacity: .85; font-variant-numeric: tabular-nums; }
.ms-body { display: grid; grid-template-columns: 218px minmax(0, 1fr); align-items: start; }
.ms-controls { padding: 14px 14px 20px 16px; position: sticky; top: 56px; }
.ms-page .v-btn { text-transform: none; letter-spacing: 0; }
.theme--dark .ms-page .v-btn.primary:not(.v-btn--disabled) { background-color: #1976d2 !important; }
.ms-controls .v-input { margin: 0 0 12px; padding-top: 10px; }
.ms-controls .v-messages__message { line-height: 1.2; hyphens: auto; }
.ms-page .error--text .v-messages__message, .ms-error .v-alert__content { color: #a3211b; }
.theme--dark .ms-page .error--text .v-messages__message, .theme--dark .ms-error .v-alert__content { color: #ffa49c; }
.ms-main { padding: 10px 16px 24px 8px; min-width: 0; }
.ms-note { opacity: .8; font-size: 12.5px; padding: 6px 0 10px; }
.ms-help { opacity: .8; font-size: 12px; line-height: 1.3; min-height: 32px; max-width: 82em; }
.ms-numbers { display: grid; grid-template-columns: repeat(9, minmax(0, 1fr)); gap: 8px; }
.ms-number { border: 1px solid rgba(128, 128, 128, .3); border-radius: 6px; padding: 5px 9px 6px; min-width: 0; }
.ms-label, .ms-beside { font-size: 11.5px; opacity: .75; }
.ms-label, .ms-beside, .ms-value { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.ms-value { font-size: 18px; font-weight: 600; font-variant-numeric: tabular-nums; }
.ms-grid { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 10px; }
.ms-panel { border: 1px solid rgba(128, 128, 128, .3); border-radius: 6px; padding: 8px 12px; min-width: 0; }
.ms-panel h2 { font-size: 13.5px; font-weight: 600; margin-bottom: 2px; }
.ms-why { margin-top: 10px; }
.ms-figure svg { width: 100%; height: auto; display: block; }
.ms-table { overflow: auto; }
.ms-table table { border-collapse: collapse; width: 100%; font-size: 12.5px; font-variant-numeric: tabular-nums; }
.ms-table th { font-weight: 500; opacity: .75; }
.ms-table th, .ms-table td { text-align: right; padding: 2px 8px; white-space: nowrap; }
.ms-table th:first-child, .ms-table td:first-child { text-align: left; padding-left: 0; }
.ms-groups, .ms-welfare-table { margin-top: 2px; }
.ms-starts { max-height: 330px; }
.ms-starts td:first-child, .ms-starts th:first-child { padding-left: 8px; }
/* The chosen start stays in sight however long the menu is. */
.ms-chosen td { position: sticky; top: 0; bottom: 0; font-weight: 600; background: #cfe1f1; }
.theme--dark .ms-chosen td { background: #24425b; }
.ms-page :focus-visible { outline: 2px solid #3d86c6; outline-offset: 2px; }
.ms-page .v-select__slot:focus-within, .ms-page .v-text-field__slot:focus-within { box-shadow: 0 2px 0 #3d86c6; }
.ms-choose { display: grid; grid-template-columns: 1fr 1fr; gap: 16px; max-width: 720px; padding-top: 10px; }
.ms-story { display: grid; grid-template-columns: minmax(0, 1.15fr) minmax(0, 1fr); gap: 20px; }
.ms-tell p { margin-bottom: 6px; }
@media (max-width: 1000px) {
  .ms-body, .ms-grid, .ms-story { grid-template-columns: minmax(0, 1fr); }
  .ms-controls { position: static; }
  .ms-numbers { grid-template-columns: repeat(3, minmax(0, 1fr)); }
}
"""
