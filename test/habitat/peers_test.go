package habitat

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/test/kit"
)

// follow returns each content of the peer file when it is written. It ends with the test.
func (h home) follow(t *testing.T) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	file := h.get(t, kit.ConfigMaps, habitat.PeerFile)
	watch, err := h.Dynamic.Resource(kit.ConfigMaps).Namespace(h.namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + habitat.PeerFile, ResourceVersion: file.GetResourceVersion(),
	})
	kit.Must(t, err)
	const many = 1000
	versions := make(chan string, many)
	go func() {
		defer close(versions)
		for event := range watch.ResultChan() {
			if live, ok := event.Object.(*unstructured.Unstructured); ok {
				peer, _ := kit.Field(live, "data", habitat.PeerFile).(string)
				versions <- peer
			}
		}
	}()
	return versions
}

// peer returns the content of the peer file, and whether the file exists.
func (h home) peer(t *testing.T) (string, bool) {
	t.Helper()
	file := h.get(t, kit.ConfigMaps, habitat.PeerFile)
	peer, ok := kit.Field(file, "data", habitat.PeerFile).(string)
	return peer, ok
}

// running returns the Pods of the namespace's Habitats that can be a peer, by address.
func (h home) running(t *testing.T) map[string]corev1.Pod {
	t.Helper()
	found := map[string]corev1.Pod{}
	for _, pod := range h.pods(t, "") {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && pod.Status.PodIP != "" {
			found[pod.Status.PodIP] = pod
		}
	}
	return found
}

// chosen returns the Pod whose address the peer file has. It complains unless that is
// one of this many running Pods.
func (h home) chosen(t *testing.T, pods int) (peer corev1.Pod, complaint string) {
	t.Helper()
	running := h.running(t)
	address, _ := h.peer(t)
	peer, ok := running[address]
	if !ok || len(running) != pods {
		complaint = fmt.Sprintf("the peer file has %q, want one of %d addresses, of %v", address, pods, slices.Sorted(maps.Keys(running)))
	}
	return peer, complaint
}

// mustHavePeer waits until the peer file has the address of one of this many running
// Pods, and returns that Pod.
func (h home) mustHavePeer(t *testing.T, pods int) (peer corev1.Pod) {
	t.Helper()
	kit.Eventually(t, func() (complaint string) {
		peer, complaint = h.chosen(t, pods)
		return complaint
	})
	return peer
}

// keeps fails if the content of the peer file changes within a while.
func (h home) keeps(t *testing.T, peer string) {
	t.Helper()
	const while = 3 * time.Second
	throughout(t, while, func() string {
		if got, _ := h.peer(t); got != peer {
			return fmt.Sprintf("the peer file has %q, want %q still", got, peer)
		}
		return ""
	})
}

// fail marks a Pod as failed, as a kubelet does when its containers have ended.
func (h home) fail(t *testing.T, pod corev1.Pod) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"uid": %q}, "status": {"phase": "Failed"}}`, pod.UID)
	_, err := h.CoreV1().Pods(h.namespace).Patch(t.Context(), pod.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	kit.Must(t, err)
}

func (h home) deletePod(t *testing.T, pod corev1.Pod) {
	t.Helper()
	kit.Must(t, h.CoreV1().Pods(h.namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}))
}

// The peer is replaced when it is deleted, or fails. The new peer was already running, and is written only once.
func TestPeersAreReplaced(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.run(t, service("db", 3, object{"service": with("db", "leader", nil)}), service("app", 2, nil))
	h.mustHavePeer(t, 5)
	versions := h.follow(t)
	deaths := []func(*testing.T, corev1.Pod){h.deletePod, h.fail}
	for round := range 4 {
		peer := h.mustHavePeer(t, 5)
		others := h.running(t)
		delete(others, peer.Status.PodIP)
		deaths[round%2](t, peer)
		next := h.next(t, versions)
		if _, ok := others[next]; !ok {
			t.Fatalf("%s died, and the next peer is %q, want one of %v", peer.Status.PodIP, next, slices.Sorted(maps.Keys(others)))
		}
	}
	peer := h.mustHavePeer(t, 5)
	h.keeps(t, peer.Status.PodIP)
	for len(versions) > 0 {
		t.Errorf("written once more than there were deaths: %v", <-versions)
	}
}

// next waits for the next written content of the peer file.
func (h home) next(t *testing.T, versions <-chan string) string {
	t.Helper()
	select {
	case peer, open := <-versions:
		if !open {
			t.Fatal("the watch of the peer file has ended")
		}
		return peer
	case <-time.After(kit.Timeout):
		t.Fatalf("after %s the peer file is still the same", kit.Timeout)
		return ""
	}
}

func (h home) eventuallyFile(t *testing.T, peer string) {
	t.Helper()
	kit.Eventually(t, func() string {
		if got, ok := h.peer(t); got != peer || !ok {
			return fmt.Sprintf("the peer file has %q, want %q", got, peer)
		}
		return ""
	})
}

// The file is empty while no Pod runs, and has an address as soon as one does. An
// address that a user writes is corrected, even if that Pod also could be the peer.
// Other keys stay.
func TestPeerFileIsKept(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.run(t, service("web", 0, nil))
	h.eventuallyFile(t, "")
	h.edit(t, "web", `{"count": 2}`)
	h.mustRun(t, "web")
	peer := h.mustHavePeer(t, 2)
	write := func(value string) {
		h.patch(t, kit.ConfigMaps, habitat.PeerFile, "hand", fmt.Sprintf(`{"data": %s}`, value))
	}
	for _, foreign := range []string{`{"peer-watch-file": "192.0.2.1"}`, `{"peer-watch-file": ""}`, `{"peer-watch-file": null}`, "null"} {
		write(foreign)
		h.mustHavePeer(t, 2)
	}
	peer = h.mustHavePeer(t, 2)
	for address := range h.running(t) {
		if address != peer.Status.PodIP {
			write(fmt.Sprintf(`{"peer-watch-file": %q, "note": "mine"}`, address))
			h.eventuallyFile(t, peer.Status.PodIP)
		}
	}
	if got := kit.Field(h.get(t, kit.ConfigMaps, habitat.PeerFile), "data", "note"); got != "mine" {
		t.Errorf("what somebody has added is %v, want mine", got)
	}
	h.edit(t, "web", `{"count": 0}`)
	h.eventuallyFile(t, "")
	kit.Eventually(t, func() string {
		if notes := h.events(t, "ConfigMap", habitat.PeerFile, "PeerChosen"); len(notes) == 0 || !strings.HasPrefix(notes[0], "Normal") {
			return fmt.Sprintf("no Event of the choice: %q", notes)
		}
		return ""
	})
}

// All Habitats of the namespace share the file. It survives the deletion of any one, is deleted
// with the last, and comes back with the next. A deleted file comes back with an address.
func TestPeerFileIsShared(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for _, name := range []string{"first", "second"} {
		h.run(t, service(name, 1, nil))
	}
	h.mustHavePeer(t, 2)
	h.mustOwn(t, "first", "second")
	uid := h.get(t, kit.ConfigMaps, habitat.PeerFile).GetUID()
	h.delete(t, habitats, "first") // which was there when it was created
	h.mustGo(t, kit.StatefulSets, "first")
	h.mustHavePeer(t, 1)
	h.mustStay(t, kit.ConfigMaps, habitat.PeerFile, uid)
	h.mustOwn(t, "second")

	h.delete(t, kit.ConfigMaps, habitat.PeerFile)
	h.mustAppear(t, kit.ConfigMaps, habitat.PeerFile, uid)
	h.mustHavePeer(t, 1)

	h.delete(t, habitats, "second")
	h.mustGo(t, kit.ConfigMaps, habitat.PeerFile)
	h.mustGo(t, kit.ConfigMaps, "habitat-peers")
	h.run(t, service("third", 1, nil))
	h.mustHavePeer(t, 1)
	h.mustOwn(t, "third")
}

// mustOwn waits until exactly these Habitats own the Application of the peer file.
func (h home) mustOwn(t *testing.T, names ...string) {
	t.Helper()
	kit.Eventually(t, func() string {
		cm := h.get(t, kit.ConfigMaps, "habitat-peers")
		if cm == nil {
			return "there is no Application of the peer file"
		}
		var owners, want []string
		for _, owner := range cm.GetOwnerReferences() {
			if owner.Controller != nil && *owner.Controller {
				t.Fatalf("an owner controls it: %v", owner)
			}
			owners = append(owners, fmt.Sprintf("%s %s %s %s", owner.APIVersion, owner.Kind, owner.Name, owner.UID))
		}
		for _, name := range names {
			want = append(want, fmt.Sprintf("%s %s %s %s", habitat.APIVersion, habitat.Kind, name, h.get(t, habitats, name).GetUID()))
		}
		if !slices.Equal(owners, want) {
			return fmt.Sprintf("the peer file belongs to %q, want %q", owners, want)
		}
		return ""
	})
}
