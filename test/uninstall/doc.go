// Package uninstall tests how an installation comes and goes: what make install.yaml
// renders is applied as a whole, strictly and without a warning, and what kubectl krake
// uninstall --check says is enough for all of it to go, with nothing that is stuck.
package uninstall
