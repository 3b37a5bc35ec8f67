package clusters

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enrolment "github.com/krake-observer/krake-observer/internal/enrol"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Attacks with the token of another cluster's agent on the hub, line by line as docs/attacks.md has them.
func TestAttacksOfAnAgentOnTheHub(t *testing.T) {
	t.Parallel()
	const namespace = "attacked"
	newNamespace(t, namespace, env.hub)
	client := clientOf(t, onHub(t, "attacker", namespace))
	victim := optionsFor(t, "victim")
	mustEnrol(t, victim)
	own := newSettings(t, "attacker", namespace, "own")
	own.claim(t, client, "attacker")
	send := func(request, body string) func() error { return kit.Send(t, client, request, body) }
	app := "PATCH /api/v1/namespaces/" + namespace + "/configmaps/own"
	// then makes a user's request after an accepted one, and checks what its answer says; "" means no error.
	then := func(attack func() error, said string, user func() error) func() error {
		return func() error {
			if err := attack(); err != nil {
				return err
			}
			if err := user(); (err == nil) != (said == "") || err != nil && !strings.Contains(err.Error(), said) {
				t.Errorf("the user hears %v, want %q", err, said)
			}
			return send(app, `{"data": {"status": "{}", "status.learned": null}, "binaryData": null}`)()
		}
	}
	patch := func(body string) func() error { return func() error { return own.TryPatch(t.Context(), body) } }
	changes := patch(fmt.Sprintf(`{"data": {%q: %q}}`, application.ManifestKey, settingsManifest("other")))
	lease := "POST /apis/coordination.k8s.io/v1/namespaces/krake-agents/leases"
	const claim = `{"metadata": {"name": %q, "annotations": {"krake.dev/target": %q}}}`
	its := application.HubLease("attacker")
	kit.Must(t, kit.Send(t, env.hub, lease, fmt.Sprintf(claim, application.HubLease("victim"), "victims"))())
	t.Cleanup(func() {
		kit.Must(t, env.hub.CoordinationV1().Leases(agents).Delete(context.Background(), its, metav1.DeleteOptions{}))
	})
	room := 1<<20 - 20
	for _, value := range own.Stored(t).Data {
		room -= len(value)
	}
	kit.Attacks(t, "other agent", []kit.Attempt{
		{What: "fills its Application, so that users cannot change it", Can: true, Try: then(
			send(app, fmt.Sprintf(`{"data": {"status.learned": %q}}`, "["+strings.Repeat(" ", room)+"]")), "split the Application", changes)},
		{What: "writes unreadable values, so that users cannot move it", Can: true, Try: then(
			send(app, `{"data": {"status.learned": "{"}}`), "decode status.learned", patch(`{"metadata": {"annotations": {"krake.dev/cluster": "victim"}}}`))},
		{What: "writes 512 MiB of compressed zeros", Can: true, Try: then(
			send(app, fmt.Sprintf(`{"data": {"inventory.attacker": null}, "binaryData": {"inventory.attacker": %q}}`, bomb(t))), "", changes)},
		{What: "removes its label from its Application", Can: true, Try: then(
			send(app, `{"metadata": {"labels": {"holder.krake.dev/attacker": null}}}`), "", func() error {
				err := changes()
				if holders := application.HoldersOf(own.Stored(t)); len(holders) != 1 {
					t.Errorf("the webhook has not restored the label: %v", holders)
				}
				return err
			})},
		{What: "creates an Event with control characters", Can: true, Try: send("POST /apis/events.k8s.io/v1/namespaces/"+namespace+"/events",
			`{"metadata": {"name": "forged"}, "eventTime": "2026-01-02T15:04:05.000000Z", "type": "Normal", "reason": "A", "action": "A", "note": "\u001b[2J",
			"reportingController": "krake-agent", "reportingInstance": "local", "regarding": {"kind": "ConfigMap", "name": "own", "namespace": "`+namespace+`"}}`)},
		{What: "claims another cluster's target in its Lease", Can: true, Try: func() error {
			err := send(lease, fmt.Sprintf(claim, its, "victims"))()
			said := enrolment.Enrol(t.Context(), victim, &strings.Builder{})
			if said == nil || !strings.Contains(said.Error(), "attacker") {
				t.Errorf("the next enrolment of the other cluster says %v", said)
			}
			return err
		}},
		{What: "changes this claim afterwards", By: "that of another target", Try: func() error {
			stored, err := env.hub.CoordinationV1().Leases(agents).Get(t.Context(), its, get)
			kit.Must(t, err)
			stored.Annotations = map[string]string{application.TargetAnnotation: "another"}
			return kit.ErrorOf(client.CoordinationV1().Leases(agents).Update(t.Context(), stored, metav1.UpdateOptions{}))
		}},
		{What: "has the garbage collector delete its Application", By: "leaves annotations, ownerReferences", Try: send(app,
			`{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "absent", "uid": "0"}]}}`)},
		{What: "creates a token that outlives its enrolment", By: `"serviceaccounts/token"`, Try: send("POST /api/v1/namespaces/krake-agents/serviceaccounts/attacker/token", `{}`)},
	})
}

// bomb returns 512 MiB of zeros, compressed and in base64.
func bomb(t *testing.T) string {
	t.Helper()
	var text bytes.Buffer
	w := gzip.NewWriter(&text)
	zeros := make([]byte, 1<<20)
	for range 1 << 9 {
		kit.Must(t, kit.ErrorOf(w.Write(zeros)))
	}
	kit.Must(t, w.Close())
	return base64.StdEncoding.EncodeToString(text.Bytes())
}
