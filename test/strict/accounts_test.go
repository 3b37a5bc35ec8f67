package strict

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

const settings = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}"

// An Application names a powerful account. Its user, who may name one or not, needs the right to act as the account, and the account must be in the same namespace.
func TestAccountNeedsTheRightToImpersonateIt(t *testing.T) {
	w := narrow
	namespace := w.namespace(t)
	w.account(t, namespace, "krake-deployer", "edit")
	w.account(t, namespace, "builder", "edit")
	w.grant(t, namespace, "low", "User/low", "resources: [configmaps], verbs: [create, get, patch, delete]")
	w.bind(t, namespace, "ClusterRole/edit", "User/edith")
	as := map[string]coreclient.ConfigMapInterface{}
	for _, user := range []string{"low", "edith"} {
		config := w.RESTConfig()
		config.Impersonate.UserName = user
		client, err := kubernetes.NewForConfig(config)
		kit.Must(t, err)
		as[user] = client.CoreV1().ConfigMaps(namespace)
		kit.EventuallyNil(t, func() error {
			plain := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
			return kit.ErrorOf(as[user].Create(t.Context(), plain, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
		})
	}
	const (
		rights  = `user "low" may not impersonate serviceaccounts "%s" in namespace "%s"`
		unnamed = " (an Application that names no account is carried out as this one): have an administrator bind a role that has these rights"
	)
	begin := w.Mark(t)
	for _, test := range []struct {
		why, user, account string
		want               string // the API server's message; empty: it is admitted
	}{
		{"who may only write ConfigMaps", "low", "", fmt.Sprintf(rights, "krake-deployer", namespace) + unnamed},
		{"nor as an account that they name", "low", "builder", fmt.Sprintf(rights, "builder", namespace)},
		{"that of another namespace", "edith", "other/krake-deployer", "Invalid value"},
		{"by its name as a user", "edith", "system:serviceaccount:kube-system:namespace-controller", "Invalid value"},
		{"what every Pod acts as", "edith", "default", "every Pod of the namespace acts as default"},
		{"nobody", "edith", " ", "Invalid value"},
		{"who has the role edit", "edith", "", ""},
	} {
		app := kit.Application(namespace, "app", settings)
		if test.account != "" {
			kit.Annotation("service-account", test.account)(app)
		}
		_, err := as[test.user].Create(t.Context(), app, metav1.CreateOptions{})
		if (err == nil) != (test.want == "") || !strings.Contains(fmt.Sprint(err), test.want) {
			t.Errorf("%s: %v\nwant %s", test.why, err, test.want)
		}
	}
	w.reconciled(t, namespace, "app")
	checkAccount(t, work(t, begin, namespace), namespace)
	const others = `{"data": {"spec.manifest": "{apiVersion: v1, kind: ConfigMap, metadata: {name: others}}"}}`
	if _, err := as["low"].Patch(t.Context(), "app", types.MergePatchType, []byte(others), metav1.PatchOptions{}); err == nil || !strings.Contains(err.Error(), "may not impersonate") {
		t.Errorf("low changes an Application of edith: %v", err)
	}
}

// A missing account is a condition, and no write happens: not at creation, not to
// repair, not to delete. When the account exists, the Application continues
// automatically.
func TestMissingAccount(t *testing.T) {
	w := narrow
	namespace := w.namespace(t)
	begin := w.Mark(t)
	w.apply(t, namespace, "app", settings)
	missing := func() {
		t.Helper()
		w.says(t, namespace, "app", "ServiceAccountNotFound", namespace+"/krake-deployer")
	}
	missing()
	if c := w.App(namespace, "app").Condition(t, application.ReadyCondition); c.Status != metav1.ConditionFalse {
		t.Errorf("Ready is %+v", c)
	}
	if work := work(t, begin, namespace); len(work) > 0 {
		t.Errorf("without an account the agent has written %v", work)
	}
	if w.Get(t, kit.ConfigMaps, namespace, "settings") != nil {
		t.Error("the object is there")
	}

	w.account(t, namespace, "krake-deployer", "edit")
	w.reconciled(t, namespace, "app")

	kit.Must(t, w.CoreV1().ServiceAccounts(namespace).Delete(t.Context(), "krake-deployer", metav1.DeleteOptions{}))
	begin = w.Mark(t)
	kit.Eventually(t, func() string { // the agent caches the account for some seconds
		w.Change(t, kit.ConfigMaps, namespace, "settings", `{"data": {"color": "blue"}}`)
		if c := w.App(namespace, "app").Condition(t, application.ReconciledCondition); c.Reason != "ServiceAccountNotFound" {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
	for _, r := range work(t, begin, namespace) {
		if isOwn(r) {
			t.Errorf("the agent itself: %s", r)
		}
	}
	w.App(namespace, "app").Delete(t)
	begin = w.Mark(t)
	w.EventuallyField(t, application.StateDeleting, kit.ConfigMaps, namespace, "app", "metadata", "labels", application.StateLabel)
	missing()
	if work := work(t, begin, namespace); len(work) > 0 || w.Get(t, kit.ConfigMaps, namespace, "settings") == nil {
		t.Errorf("without an account the agent has written %v", work)
	}
	w.account(t, namespace, "krake-deployer", "")
	w.EventuallyGone(t, kit.ConfigMaps, namespace, "app")
	w.EventuallyGone(t, kit.ConfigMaps, namespace, "settings")
}

// If the account lacks the rights for the manifest, no other identity does the work
// instead. A name that the agent may not impersonate is refused.
func TestAccountsThatMayNot(t *testing.T) {
	w := narrow
	namespace := w.namespace(t)
	w.account(t, namespace, "krake-deployer", "")
	w.account(t, namespace, "builder", "edit")
	begin := w.Mark(t)
	w.apply(t, namespace, "app", settings)
	w.says(t, namespace, "app", "Forbidden", "settings")
	w.apply(t, namespace, "app-named", strings.ReplaceAll(settings, "settings", "named"), kit.Annotation("service-account", "builder"))
	w.says(t, namespace, "app-named", "Forbidden", "named")
	checkNoneAccepted(t, begin, namespace)
	w.bind(t, namespace, "ClusterRole/edit", "ServiceAccount/krake-deployer")
	w.reconciled(t, namespace, "app")

	// As in the documentation, for another name.
	t.Cleanup(w.Make(t, "", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: builders, labels: {krake.dev/aggregate-to-agent: "true"}}
rules:
- apiGroups: [authentication.k8s.io]
  resources: [serviceaccounts]
  resourceNames: [builder]
  verbs: ["impersonate:serviceaccount"]
`))
	w.reconciled(t, namespace, "app-named")
}

// The agent reads as itself. Of an object that the account may not get, the Application shows nothing, and nothing is
// written, until the account has the right.
func TestNothingIsPublishedThatTheAccountMayNotRead(t *testing.T) {
	const canary = "canary-of-an-account-without-get"
	w := narrow
	namespace := w.namespace(t)
	w.account(t, namespace, "krake-deployer", "")
	grant := func(verbs string) {
		t.Helper()
		w.grant(t, namespace, "writer", "ServiceAccount/krake-deployer", "resources: [configmaps], verbs: ["+verbs+"]")
	}
	grant("create, patch, delete")
	begin := w.Mark(t)
	w.apply(t, namespace, "app", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: red}}",
		kit.Schema("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: null, note: null}}"))
	w.says(t, namespace, "app", "Forbidden", "may not get", "settings")
	if work := work(t, begin, namespace); len(work) > 0 {
		t.Errorf("written: %v", work)
	}
	grant("create, patch, delete, get")
	w.reconciled(t, namespace, "app")

	grant("create, patch, delete")
	kit.Eventually(t, func() string { // the agent caches the right for some seconds
		w.Change(t, kit.ConfigMaps, namespace, "settings", `{"data": {"color": "blue"}}`)
		if c := w.App(namespace, "app").Condition(t, application.ReconciledCondition); c.Reason != "Forbidden" {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
	w.Change(t, kit.ConfigMaps, namespace, "settings", `{"data": {"note": "`+canary+`"}}`)
	w.Mark(t).Calm(t, 5*time.Second, byAgent, isWork)
	if text := kit.JSON(t, w.Get(t, kit.ConfigMaps, namespace, "app").Object); strings.Contains(string(text), canary) {
		t.Errorf("published: %s", text)
	}
	grant("create, patch, delete, get")
	w.EventuallyField(t, "red", kit.ConfigMaps, namespace, "settings", "data", "color")
}

// A deleted namespace loses its account first, often before the objects. The agent
// needs no account to see that the objects are gone.
func TestNamespaceIsDeleted(t *testing.T) {
	w := narrow
	namespace := w.namespace(t)
	w.account(t, namespace, "krake-deployer", "edit")
	for i := range 5 {
		name := fmt.Sprintf("app-%d", i)
		w.apply(t, namespace, name, strings.ReplaceAll(settings, "settings", fmt.Sprintf("settings-%d", i)))
		w.reconciled(t, namespace, name)
	}
	kit.Must(t, w.CoreV1().ServiceAccounts(namespace).Delete(t.Context(), "krake-deployer", metav1.DeleteOptions{}))
	if err := errors.Join(w.installation.StopAgent(), w.installation.StartAgent(t.Context())); err != nil { // clears the agent's cache of the account
		t.Fatal(err)
	}
	kit.Must(t, w.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}))
	w.EventuallyGone(t, kit.Namespaces, "", namespace)
}
