// Package uninstall tests the installation and its removal. The output of make
// install.yaml is applied as a whole, strictly and without a warning. The steps of
// kubectl krake uninstall --check remove all of it, and nothing is stuck.
package uninstall
