package habitat

import (
	"encoding/json"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Attacks with the token of krake-habitat, line by line as docs/attacks.md has them.
func TestAttacksOfTheHabitats(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.run(t, service("web", 1, nil))
	h.mustHavePeer(t, 1)
	config := rest.AnonymousClientConfig(h.RESTConfig())
	config.BearerToken, config.UserAgent = h.Token(t, "krake-system", "krake-habitat"), thief
	client, err := kubernetes.NewForConfig(config)
	kit.Must(t, err)
	send := func(request, body string) func() error { return kit.Send(t, client, request, body) }
	in := "/api/v1/namespaces/" + h.namespace + "/configmaps"
	of := "PATCH " + in + "/habitat-web"
	const settings = "krake-habitat"
	const definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/habitats.habitat.sh?dryRun=All"
	elsewhere := h.Get(t, kit.Definitions, "", "habitats.habitat.sh")
	elsewhere.Object["spec"].(object)["conversion"] = object{"strategy": "Webhook", "webhook": object{
		"conversionReviewVersions": []any{"v1"}, "clientConfig": object{"url": "https://attacker.example.org"},
	}}
	role := kit.Application(h.namespace, "habitat-role", "{apiVersion: v1, kind: Service, metadata: {name: role}, spec: {ports: [{port: 80}]}}",
		kit.Annotation("generated-from", "Habitat/role"))
	kit.Attacks(t, "krake-habitat", []kit.Attempt{
		{What: "writes its own address into the peer file", Can: true, Try: func() error {
			err := send("PATCH "+in+"/"+habitat.PeerFile, `{"data": {"peer-watch-file": "192.0.2.1"}}`)()
			h.mustHavePeer(t, 1)
			return err
		}},
		{What: "writes an address with arguments into it", By: "one IP address", Try: send("PATCH "+in+"/"+habitat.PeerFile,
			`{"data": {"peer-watch-file": "192.0.2.1\n--peer 192.0.2.2"}}`)},
		{What: "has its own host convert Habitats", By: "conversion", Try: send("PUT "+definition, string(kit.JSON(t, elsewhere)))},
		{What: "has a Habitat's Application adopt objects", By: settings, Try: send(of, `{"metadata": {"annotations": {"krake.dev/adopt": "true"}}}`)},
		{What: "has it act as a service account", By: settings, Try: send(of, `{"metadata": {"annotations": {"krake.dev/service-account": "builder"}}}`)},
		{What: "moves it to another cluster", By: `may not deploy-to`, Try: send(of, `{"metadata": {"annotations": {"krake.dev/cluster": "east"}}}`)},
		{What: "creates a Service by an Application", By: `services in namespace`, Try: send("POST "+in, string(kit.JSON(t, role)))},
	})
}

// Attacks of a user with all rights on ConfigMaps and Habitats, and no other, line by line as docs/attacks.md has them.
func TestAttacksOfAUserWithHabitats(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.kubectl(t, "create", "role", "hana", "--verb=*", "--resource=configmaps,habitats.habitat.sh")
	h.kubectl(t, "create", "rolebinding", "hana", "--role=hana", "--user=hana")
	h.run(t, service("web", 1, nil))
	h.mustHavePeer(t, 1)
	config := h.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: "hana"}
	client, err := kubernetes.NewForConfig(config)
	kit.Must(t, err)
	in := "/namespaces/" + h.namespace
	kit.EventuallyNil(t, func() error { return kit.Send(t, client, "GET /apis/habitat.sh/v1beta1"+in+"/habitats", "")() })
	create := func(content any) error {
		path := "/api/v1" + in + "/configmaps"
		if _, isHabitat := content.(object); isHabitat {
			path = "/apis/habitat.sh/v1beta1" + in + "/habitats"
		}
		return kit.Send(t, client, "POST "+path, string(kit.JSON(t, content)))()
	}
	theirs := service("db", 1, nil)
	theirs["metadata"].(object)["namespace"] = h.namespace
	kit.Attacks(t, "Habitats", []kit.Attempt{
		{What: "writes its own address into the peer file", Can: true, Try: func() error {
			err := kit.Send(t, client, "PATCH /api/v1"+in+"/configmaps/"+habitat.PeerFile, `{"data": {"peer-watch-file": "192.0.2.1"}}`)()
			h.mustHavePeer(t, 1)
			return err
		}},
		{What: "takes the name of a Habitat's Application", Can: true, Try: func() error {
			err := create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "habitat-shop"}})
			h.create(t, habitats, service("shop", 1, nil))
			h.mustSay(t, "shop", "Accepted", metav1.ConditionFalse, "NameConflict")
			return err
		}},
		{What: "has a Habitat take over, and delete, another owner's StatefulSet", By: "NameConflict", Try: func() error {
			h.create(t, kit.StatefulSets, parsed(t, theirs).Workload(habitat.DefaultFilesImage))
			app := kit.Application("", "habitat-db", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", kit.Annotation("generated-from", "Habitat/db"),
				kit.Annotation("adopt", "true"), kit.Annotation("deletion-policy", "delete"))
			if err := errors.Join(create(app), create(service("db", 1, nil))); err != nil {
				return err
			}
			kit.Eventually(t, func() string {
				if h.condition(t, "db", "Accepted").Status == "" {
					return "nothing is said of it"
				}
				return ""
			})
			if h.condition(t, "db", "Accepted").Status == metav1.ConditionTrue {
				h.mustRun(t, "db")
				return nil
			}
			text, err := json.Marshal(h.condition(t, "db", "Accepted"))
			return errors.Join(err, apierrors.NewForbidden(schema.GroupResource{Resource: "habitats"}, "db", errors.New(string(text))))
		}},
		{What: "writes arguments into a service group", Refusal: metav1.StatusReasonInvalid, By: "group", Try: func() error {
			return create(service("args", 1, object{"service": with("args", "standalone", object{"group": "default --peer 192.0.2.1"})}))
		}},
	})
}
