package application

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Hook is a way for the Pods of an Application to call its agent.
type Hook string

// The hooks, in the order of Krake.
const (
	// Complete deletes the Application once it reports that its work is done.
	Complete Hook = "complete"
	// Shutdown has the agent ask the Application to shut down, and wait for its answer, before it is
	// deleted or moved.
	Shutdown Hook = "shutdown"
)

// Hooks are the hooks that an Application has.
type Hooks struct {
	Complete, Shutdown bool
	// InitContainers injects the hooks into init containers, too.
	InitContainers bool
	// Application and Namespace are in the names of the Secrets; both are empty without a hook.
	Application, Namespace string
}

// HooksOf reads the hooks of an Application. It ignores other words, which admission refuses.
func HooksOf(cm *corev1.ConfigMap) Hooks {
	words := wordsOf(cm.Annotations[HooksAnnotation])
	hooks := Hooks{Complete: slices.Contains(words, string(Complete)), Shutdown: slices.Contains(words, string(Shutdown))}
	if hooks == (Hooks{}) {
		return hooks
	}
	hooks.InitContainers = cm.Annotations[InitContainersAnnotation] == "true"
	hooks.Application, hooks.Namespace = cm.Name, cm.Namespace
	return hooks
}

// Enabled returns the hooks that are on, complete before shutdown.
func (h Hooks) Enabled() []Hook {
	var enabled []Hook
	for _, hook := range []Hook{Complete, Shutdown} {
		if h.Has(hook) {
			enabled = append(enabled, hook)
		}
	}
	return enabled
}

// Has reports whether a hook is on.
func (h Hooks) Has(hook Hook) bool {
	return hook == Complete && h.Complete || hook == Shutdown && h.Shutdown
}

// TokenSecret returns the name of the Secret with the token of a hook and the URL to call.
func TokenSecret(application string, hook Hook) string {
	return application + "-krake-" + string(hook) + "-secret-token"
}

// CertsSecret returns the name of the Secret with the certificates for calling a hook.
func CertsSecret(application string, hook Hook) string {
	return application + "-krake-" + string(hook) + "-secret-certs"
}

// HookVolume returns the name of the volume of the certificates. It digests the name of an
// Application that is too long for a volume, or has dots.
func HookVolume(application string, hook Hook) string {
	suffix := "-" + string(hook) + "-volume"
	if name := application + "-krake" + suffix; len(validation.IsDNS1123Label(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(application))
	return "krake-" + hex.EncodeToString(sum[:])[:10] + suffix
}

// TokenVariable and URLVariable return the names of a hook's variables in containers, TokenKey and
// URLKey those of their values in the Secret.
func TokenVariable(hook Hook) string { return "KRAKE_" + strings.ToUpper(string(hook)) + "_TOKEN" }

// URLVariable is described with [TokenVariable].
func URLVariable(hook Hook) string { return "KRAKE_" + strings.ToUpper(string(hook)) + "_URL" }

// TokenKey is described with [TokenVariable].
func TokenKey(hook Hook) string { return strings.ToLower(TokenVariable(hook)) }

// URLKey is described with [TokenVariable].
func URLKey(hook Hook) string { return strings.ToLower(URLVariable(hook)) }

// The keys of the Secret with the certificates, which are files below [CertsPath].
const (
	CABundleKey    = "ca-bundle.pem"
	CertificateKey = "cert.pem"
	PrivateKeyKey  = "key.pem"
)

// CertsPath returns the folder of the certificates in containers.
func CertsPath(hook Hook) string { return "/etc/krake_" + string(hook) + "_certs/" }

// ShutdownService is the name of the Service that the agent asks to shut down.
const ShutdownService = "shutdown"

// HookPath returns the path of the URL by which an Application calls its agent. The action is a
// hook, or "retry".
func HookPath(app types.NamespacedName, action string) string {
	return "/kubernetes/namespaces/" + app.Namespace + "/applications/" + app.Name + "/" + action
}

// DigestOf returns what documents have in place of the value of a Secret: "sha256:...".
func DigestOf(value []byte) string {
	sum := sha256.Sum256(value)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ShutdownStrategy is what an agent does with an Application that does not confirm its shutdown.
type ShutdownStrategy string

// The strategies. GiveUpShutdown, the default, leaves the Application unchanged.
const (
	GiveUpShutdown ShutdownStrategy = "give_up"
	DeleteAnyway   ShutdownStrategy = "delete"
)

// ShutdownSettings are the annotations about the shutdown. Nil and empty values stand for the flags
// of the agent.
type ShutdownSettings struct {
	GraceTime *time.Duration
	Strategy  ShutdownStrategy
	Retries   *int
	// Retry asks for another try after the agent has given up, if it differs from the last one.
	Retry string
}

// HookRecord is what the inventory of one cluster has of the hooks.
type HookRecord struct {
	// Tokens are the digests of the tokens that the agent has created.
	Tokens map[Hook]string `json:"tokens,omitempty"`
	// Completed reports that the Application has called the hook complete.
	Completed bool `json:"completed,omitempty"`
	// Shutdown is the progress of the shutdown there, nil if there was no request.
	Shutdown *ShutdownRecord `json:"shutdown,omitempty"`
}

func (r HookRecord) isEmpty() bool { return len(r.Tokens) == 0 && !r.Completed && r.Shutdown == nil }

// ShutdownRecord is the progress of a shutdown.
type ShutdownRecord struct {
	// State is WAITING_FOR_CLEANING, READY_FOR_ACTION once the Application has confirmed or is
	// gone, or DEGRADED if the agent has given up.
	State State `json:"state"`
	// Attempt is the number of the attempt that ends at the deadline, from 1 on.
	Attempt  int         `json:"attempt"`
	Deadline metav1.Time `json:"deadline"`
	// Retry is the [ShutdownSettings].Retry that was answered last.
	Retry string `json:"retry,omitempty"`
	// Asked reports that the agent has called the Application in this attempt, or tried to.
	Asked bool `json:"asked,omitempty"`
	// Message describes the first call of the attempt, or why the agent has given up.
	Message string `json:"message,omitempty"`
}
