// Package supported knows which versions of Kubernetes are supported.
package supported

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Oldest is the oldest supported version of Kubernetes.
const Oldest = "1.33"

// versionTimeout bounds the question for the version. A program starts without an answer, too.
const versionTimeout = 5 * time.Second

// CheckServer returns an error for an API server of a version that is not supported: its policies
// would fail later, one by one. A server that does not answer is not refused.
func CheckServer(config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.Timeout = versionTimeout
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("ask for the version of Kubernetes: %w", err)
	}
	info, err := client.ServerVersion()
	if err != nil {
		return nil //nolint:nilerr // it may be down, or hide its version
	}
	return Check(info.GitVersion)
}

// Check returns an error for a version that is not supported. It accepts what is no version.
func Check(server string) error {
	found, err := version.ParseGeneric(server)
	if err == nil && found.LessThan(version.MustParseGeneric(Oldest)) {
		return fmt.Errorf("the API server has Kubernetes %s, which is not supported: upgrade it to %s or later", server, Oldest)
	}
	return nil
}
