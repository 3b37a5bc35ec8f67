package cluster

import (
	"encoding/json"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

// The module for another version has the staging modules of that version, and the etcd of its client.
func TestModuleOfAnotherVersion(t *testing.T) {
	var mod module
	check.Must(t, json.Unmarshal([]byte(`{
		"Go": "1.24.0",
		"Require": [{"Path": "go.etcd.io/etcd/client/v3", "Version": "v3.5.21"}, {"Path": "k8s.io/klog/v2", "Version": "v2.130.1"}],
		"Replace": [
			{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
			{"Old": {"Path": "example.com/fork"}, "New": {"Path": "example.com/other", "Version": "v1.0.0"}}
		]}`), &mod))
	const want = `module kubernetes

go 1.24.0

require (
	k8s.io/kubernetes v1.33.13
	go.etcd.io/etcd/server/v3 v3.5.21
)
replace k8s.io/api => k8s.io/api v0.33.13
`
	text := mod.nested("v1.33.13")
	check.Equal(t, "go.mod", want, text)
	found, err := kubernetesVersion([]byte(text))
	check.Must(t, err)
	check.Equal(t, "version", "v1.33.13", found)
}

func TestNoVersion(t *testing.T) {
	for _, wanted := range []string{"latest", "1", "2.0", "1.33-rc.1", "1.33.1.1", "../1.33"} {
		_, err := sourceOf(t.Context(), "kubernetes", t.TempDir(), wanted)
		check.Fails(t, wanted, err, "is no version such as 1.33 or 1.33.1")
	}
	_, err := newestOf(t.Context(), t.TempDir(), "1.3333")
	check.Fails(t, "a release to come", err, "there is no release 1.3333 of Kubernetes")
}
