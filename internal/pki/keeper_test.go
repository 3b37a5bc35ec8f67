package pki_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// layout are the keys of the Secret when no rotation is in progress.
var layout = []string{"ca.crt", "ca.key", "tls.crt", "tls.key"}

func (w *world) keys() []string { return slices.Sorted(maps.Keys(w.secret().Data)) }

func cas(bundle []byte) int { return bytes.Count(bundle, []byte("BEGIN CERTIFICATE")) }

// settle waits until every replica is ready and serves the pair of the Secret, which differs
// from before. It returns the served certificate.
func (w *world) settle(replicas []*replica, before *x509.Certificate) *x509.Certificate {
	w.Helper()
	var leaf *x509.Certificate
	w.until("all replicas serve the new pair and are ready", func() bool {
		block, _ := pem.Decode(w.secret().Data[corev1.TLSCertKey])
		if block == nil {
			return false
		}
		for _, r := range replicas {
			leaf = r.leaf()
			if leaf == nil || !bytes.Equal(leaf.Raw, block.Bytes) || r.Ready(nil) != nil {
				return false
			}
		}
		return before == nil || !leaf.Equal(before)
	})
	return leaf
}

// The Secret is shipped empty. Two replicas that start at once agree.
func TestTheFirstStart(t *testing.T) {
	w := newWorld(t)
	w.observe()
	w.settle(w.started(2), nil)
	check.Equal(t, "keys of the Secret", layout, w.keys())
	check.Equal(t, "bundle", string(w.secret().Data["ca.crt"]), string(bundleOf(w.configuration())))
}

// If another client removes tls.crt, the replicas serve the former pair until the next. The
// new pair has the same CA, so the configuration stays unchanged.
func TestRotationOfThePair(t *testing.T) {
	w := newWorld(t)
	replicas := w.started(2)
	leaf := w.settle(replicas, nil)
	w.observe()
	version := versionOf(w.configuration())
	for range 20 {
		w.remove(corev1.TLSCertKey)
		leaf = w.settle(replicas, leaf)
	}
	w.pass(59 * 24 * time.Hour)
	w.settle(replicas, nil)
	check.Equal(t, "the pair is the same when more than a third of its life is left", true, leaf.Equal(replicas[0].leaf()))
	w.pass(24 * time.Hour)
	w.settle(replicas, leaf)
	check.Equal(t, "version of the configuration", version, versionOf(w.configuration()))
}

// At each moment, an outdated API server accepts the served certificate. The overlap ends when
// the next CA has been published for its full length, not before.
func TestRotationOfTheCA(t *testing.T) {
	w := newWorld(t)
	replicas := w.started(2)
	leaf := w.settle(replicas, nil)
	w.observe()
	for range 3 {
		w.rotate(replicas, func() { w.remove("ca.key") })
		leaf = w.settle(replicas, leaf)
	}
}

// rotate replaces a CA, starting with begin, and checks each step.
func (w *world) rotate(replicas []*replica, begin func()) {
	w.Helper()
	former := string(w.secret().Data["ca.crt"])
	begin()
	w.until("there is a next CA", func() bool { return w.secret().Data["next-ca.crt"] != nil })
	next := string(w.secret().Data["next-ca.crt"])
	w.until("it is published", func() bool { return bytes.Contains(w.last().bundle, []byte(next)) })
	since := w.last().at
	check.Equal(w, "the former CA", former, string(w.secret().Data["ca.crt"]))
	w.wait("the next CA is the current one", func() bool { return string(w.secret().Data["ca.crt"]) == next })
	if took := w.Now().Sub(since); took < overlap-tick {
		w.Errorf("promoted after %s", took)
	}
	check.Equal(w, "keys of the Secret", []string{"ca.crt", "ca.key", "previous-ca.crt", "tls.crt", "tls.key"}, w.keys())
	w.until("the bundle is the former CA and this one", func() bool { return string(bundleOf(w.configuration())) == former+next })
	for _, r := range replicas {
		w.until("a replica is ready", func() bool { return r.Ready(nil) == nil })
	}
}

// All replicas end in a phase of the rotation. The new replicas continue it.
func TestRestartInEachPhase(t *testing.T) {
	var bundle []byte
	for _, phase := range []struct {
		name string
		// reach brings about the phase. after ends it while no replica runs.
		reach, after func(*world)
	}{
		{"a new CA is asked for, and there is no pair", func(*world) {}, func(w *world) { w.remove("ca.key", corev1.TLSCertKey) }},
		{"the next CA is made, and not published", func(w *world) {
			bundle = bundleOf(w.configuration())
			w.remove("ca.key")
			w.until("there is a next CA", func() bool { return w.secret().Data["next-ca.crt"] != nil })
			w.until("it is published", func() bool { return cas(bundleOf(w.configuration())) == 2 })
		}, func(w *world) { w.setBundle(bundle) }},
		{"the next CA is promoted, and the bundle as before", func(w *world) {
			former := w.secret().Data["ca.crt"]
			w.remove("ca.key")
			w.wait("it is promoted", func() bool {
				secret := w.secret()
				bundle = slices.Concat(former, secret.Data["ca.crt"])
				return secret.Data["previous-ca.crt"] != nil
			})
		}, func(w *world) { w.setBundle(bundle) }},
		{"the Secret is empty", func(*world) {}, func(w *world) { w.change(`{"data": null}`) }},
	} {
		t.Run(phase.name, func(t *testing.T) {
			w := newWorld(t)
			former := w.started(2)
			w.observe()
			phase.reach(w)
			for _, r := range former {
				r.stop()
			}
			phase.after(w)
			replicas := []*replica{w.start(), w.start()}
			w.wait("nothing is going on", w.sound)
			w.settle(replicas, nil)
		})
	}
}

// The bundle is restored when another client removes it. The other fields of the configuration
// are not touched.
func TestTheBundleComesBack(t *testing.T) {
	w := newWorld(t)
	w.started(2)
	bundle := bundleOf(w.configuration())
	change := func(kind types.PatchType, patch string) func() error {
		return func() error { return patchConfiguration(kind, patch) }
	}
	// A replica may write the configuration after kubectl has read it and before kubectl
	// replaces it: kubectl then asks its user to try again.
	run := func(arguments ...string) func() error {
		isConflict := func(err error) bool { return strings.Contains(err.Error(), "Error from server (Conflict)") }
		return func() error {
			return retry.OnError(retry.DefaultBackoff, isConflict, func() error {
				said, err := kubectl(arguments...)
				t.Log(said)
				return err
			})
		}
	}
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"it is emptied", change(types.JSONPatchType, `[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]`)},
		{"another webhook comes first, and has none", change(types.StrategicMergePatchType, `{"webhooks": [{"name": "another.krake.dev",
			"admissionReviewVersions": ["v1"], "sideEffects": "None", "clientConfig": {"url": "https://localhost:1"}}]}`)},
		{"the manifests are applied again", run("apply")},
		{"they are applied by the server", run("apply", "--server-side", "--force-conflicts")},
		{"they replace what is there", run("replace")}, // this also empties the Secret
		{"the configuration is deleted and created again", func() error {
			created := w.configuration()
			created.ObjectMeta = metav1.ObjectMeta{Name: configuration}
			created.Webhooks[0].ClientConfig.CABundle = nil
			configurations := admin.AdmissionregistrationV1().MutatingWebhookConfigurations()
			err := configurations.Delete(context.Background(), configuration, metav1.DeleteOptions{})
			return errors.Join(err, kit.ErrorOf(configurations.Create(context.Background(), created, metav1.CreateOptions{})))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			kit.Must(t, c.do())
			w.until("every webhook has the bundle", func() bool {
				for _, webhook := range w.configuration().Webhooks {
					if !bytes.Contains(webhook.ClientConfig.CABundle, w.current(bundle)) {
						return false
					}
				}
				return true
			})
		})
	}
}

// current returns the CA of the Secret, or otherwise if there is none.
func (w *world) current(otherwise []byte) []byte {
	if ca := w.secret().Data["ca.crt"]; ca != nil {
		return ca
	}
	return otherwise
}

// sound reports whether the Secret has a CA and a pair, each with its key, and no rotation is
// in progress.
func (w *world) sound() bool {
	data := w.secret().Data
	if _, err := tls.X509KeyPair(data["ca.crt"], data["ca.key"]); err != nil {
		return false
	}
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return false
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(data["ca.crt"])
	_, err = pair.Leaf.Verify(x509.VerifyOptions{DNSName: dnsName, Roots: roots, CurrentTime: w.Now()})
	return err == nil && data["next-ca.crt"] == nil
}
