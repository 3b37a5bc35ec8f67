// Package ui serves the page of kubectl krake ui: the Applications, what happened to each of them, and
// each field of their objects as the observer schema sees it.
//
// The page is for one user on one machine. It listens on the loopback address only, opens with a link
// that works once, and answers only its own origin: see [Server.Handler]. It reads through a [Source],
// which has the user's rights, and writes nothing to a cluster. All HTML comes from the templates in templates,
// which escape every value. The script in assets only moves it into the page.
package ui
