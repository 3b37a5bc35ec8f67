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

// Hook is a way in which the Pods of an Application speak to its agent.
type Hook string

// The hooks, in the order of the reference.
const (
	// Complete: the Application says that its work is done, and is deleted.
	Complete Hook = "complete"
	// Shutdown: the Application is asked to shut down before it is deleted or
	// moved, and says when it has.
	Shutdown Hook = "shutdown"
)

// Hooks are those that an Application has.
type Hooks struct {
	Complete, Shutdown bool
	// InitContainers: these get what the others get.
	InitContainers bool
	// Application and Namespace are those of the Application, after which the
	// Secrets are named; empty if it has no hook.
	Application, Namespace string
}

// HooksOf reads the hooks of an Application. Words that name none are without effect
// here; admission refuses them.
func HooksOf(cm *corev1.ConfigMap) Hooks {
	words := hookWords(cm.Annotations[HooksAnnotation])
	hooks := Hooks{Complete: slices.Contains(words, string(Complete)), Shutdown: slices.Contains(words, string(Shutdown))}
	if hooks == (Hooks{}) {
		return hooks
	}
	hooks.InitContainers = cm.Annotations[InitContainersAnnotation] == "true"
	hooks.Application, hooks.Namespace = cm.Name, cm.Namespace
	return hooks
}

func hookWords(annotation string) []string {
	var words []string
	for word := range strings.SplitSeq(annotation, ",") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// Enabled gives the hooks that are on, complete before shutdown.
func (h Hooks) Enabled() []Hook {
	var enabled []Hook
	for _, hook := range []Hook{Complete, Shutdown} {
		if h.Has(hook) {
			enabled = append(enabled, hook)
		}
	}
	return enabled
}

// Has tells if a hook is on.
func (h Hooks) Has(hook Hook) bool {
	return hook == Complete && h.Complete || hook == Shutdown && h.Shutdown
}

// TokenSecret names the Secret with the token of a hook and the URL to call.
func TokenSecret(application string, hook Hook) string {
	return application + "-krake-" + string(hook) + "-secret-token"
}

// CertsSecret names the Secret with the certificates for calling a hook.
func CertsSecret(application string, hook Hook) string {
	return application + "-krake-" + string(hook) + "-secret-certs"
}

// HookVolume names the volume of the certificates. The name of an Application may
// be longer than that of a volume, and have dots: then it is digested.
func HookVolume(application string, hook Hook) string {
	suffix := "-" + string(hook) + "-volume"
	if name := application + "-krake" + suffix; len(validation.IsDNS1123Label(name)) == 0 {
		return name
	}
	sum := sha256.Sum256([]byte(application))
	return "krake-" + hex.EncodeToString(sum[:])[:10] + suffix
}

// TokenVariable and URLVariable name the variables of a hook in its containers,
// and TokenKey and URLKey their values in the Secret.
func TokenVariable(hook Hook) string { return "KRAKE_" + strings.ToUpper(string(hook)) + "_TOKEN" }

// URLVariable is described with [TokenVariable].
func URLVariable(hook Hook) string { return "KRAKE_" + strings.ToUpper(string(hook)) + "_URL" }

// TokenKey is described with [TokenVariable].
func TokenKey(hook Hook) string { return strings.ToLower(TokenVariable(hook)) }

// URLKey is described with [TokenVariable].
func URLKey(hook Hook) string { return strings.ToLower(URLVariable(hook)) }

// Keys of the Secret with the certificates: they are files below [CertsPath].
const (
	CABundleKey    = "ca-bundle.pem"
	CertificateKey = "cert.pem"
	PrivateKeyKey  = "key.pem"
)

// CertsPath is where containers find the certificates.
func CertsPath(hook Hook) string { return "/etc/krake_" + string(hook) + "_certs/" }

// ShutdownService is the name of the Service that the agent asks to shut down.
const ShutdownService = "shutdown"

// HookPath is the path of the URL by which an Application calls its agent: of a
// hook, or "retry".
func HookPath(app types.NamespacedName, action string) string {
	return "/kubernetes/namespaces/" + app.Namespace + "/applications/" + app.Name + "/" + action
}

// DigestOf is how the value of a Secret stands in documents: "sha256:..." .
func DigestOf(value []byte) string {
	sum := sha256.Sum256(value)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ShutdownStrategy is what becomes of an Application that does not confirm its
// shutdown.
type ShutdownStrategy string

// The strategies. GiveUp, the default, keeps the Application as it is.
const (
	GiveUpShutdown ShutdownStrategy = "give_up"
	DeleteAnyway   ShutdownStrategy = "delete"
)

// ShutdownWishes are what an Application says of its shutdown; nil, or empty, is
// what the agent says.
type ShutdownWishes struct {
	GraceTime *time.Duration
	Strategy  ShutdownStrategy
	Retries   *int
	// Retry asks for another try once the agent has given up. What counts is that it
	// differs from that of the last time.
	Retry string
}

// HookRecord is what the agent of one cluster keeps of the hooks, in its inventory.
type HookRecord struct {
	// Tokens are the digests of those that it has made.
	Tokens map[Hook]string `json:"tokens,omitempty"`
	// Completed: the Application has said that its work is done.
	Completed bool `json:"completed,omitempty"`
	// Shutdown is how far the shutdown there has got; nil: it was not asked for.
	Shutdown *ShutdownRecord `json:"shutdown,omitempty"`
}

func (r HookRecord) isEmpty() bool { return len(r.Tokens) == 0 && !r.Completed && r.Shutdown == nil }

// ShutdownRecord is how far a shutdown has got.
type ShutdownRecord struct {
	// State is WAITING_FOR_CLEANING, READY_FOR_ACTION once the Application has
	// confirmed, or is no more, or DEGRADED when the agent has given up.
	State State `json:"state"`
	// Attempt is that which ends at the deadline, from 1 on.
	Attempt  int         `json:"attempt"`
	Deadline metav1.Time `json:"deadline"`
	// Retry is the wish that was answered last.
	Retry string `json:"retry,omitempty"`
	// Asked: in this attempt, the Application was asked, or it was tried.
	Asked bool `json:"asked,omitempty"`
	// Message tells of the first call of the attempt, or why the agent has given up.
	Message string `json:"message,omitempty"`
}
