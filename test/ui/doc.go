// Package ui opens the page of kubectl krake ui in a real browser, against a real API server with webhook and
// agent. It is a module of its own, because it has the code of a browser's protocol.
//
// The browser is the program of KRAKE_BROWSER, or the first of chromium, chromium-browser, google-chrome and
// google-chrome-stable in PATH. Without one, the tests fail if KRAKE_BROWSER_REQUIRED is set, and are skipped
// with a reason otherwise.
package ui
