package guard

import (
	stdjson "encoding/json"
	"errors"
	"maps"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json" // reads integers as such
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// subject is the object that a request is about. Any client that reaches the port may send requests. So only
// the head of the object is read before it is known to be one of an Application.
type subject struct {
	at manifest.Ref
	// head has the identity, annotations and time of deletion of the object. For a Scale it is the whole
	// object, as it was read.
	head map[string]any
}

// scaled are the resources whose scale is judged: those with the replicas in the field spec.replicas.
var scaled = []gvr.GroupVersionResource{
	{Group: "apps", Version: "v1", Resource: "deployments"}, {Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"}, {Version: "v1", Resource: "replicationcontrollers"},
}

const scale = "scale"

// headOf reads only what tells the owner of an object.
func headOf(object []byte) (map[string]any, error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace         string         `json:"namespace"`
			Name              string         `json:"name"`
			DeletionTimestamp string         `json:"deletionTimestamp"`
			Annotations       map[string]any `json:"annotations"`
		} `json:"metadata"`
	}
	if err := stdjson.Unmarshal(object, &head); err != nil {
		return nil, errors.New("there is no stored object that can be read")
	}
	metadata := map[string]any{"name": head.Metadata.Name, "annotations": head.Metadata.Annotations}
	for name, value := range map[string]string{"namespace": head.Metadata.Namespace, "deletionTimestamp": head.Metadata.DeletionTimestamp} {
		if value != "" {
			metadata[name] = value
		}
	}
	return map[string]any{"apiVersion": head.APIVersion, "kind": head.Kind, "metadata": metadata}, nil
}

// change reads the object before and after a request that changes it.
func change(request admission.Request, s subject) (before, after map[string]any, err error) {
	if request.SubResource == scale {
		var from, to autoscalingv1.Scale
		if json.Unmarshal(request.OldObject.Raw, &from) != nil || json.Unmarshal(request.Object.Raw, &to) != nil {
			return nil, nil, errors.New("it is no Scale")
		}
		return withReplicas(s.head, from.Spec.Replicas), withReplicas(s.head, to.Spec.Replicas), nil
	}
	if json.Unmarshal(request.OldObject.Raw, &before) != nil || json.Unmarshal(request.Object.Raw, &after) != nil || after == nil {
		return nil, nil, errors.New("an object cannot be read")
	}
	return before, after, nil
}

// withReplicas returns a copy of an object with a number of replicas.
func withReplicas(live map[string]any, replicas int32) map[string]any {
	with := maps.Clone(live)
	spec, _ := live["spec"].(map[string]any)
	if spec = maps.Clone(spec); spec == nil {
		spec = map[string]any{}
	}
	spec["replicas"] = int64(replicas)
	with["spec"] = spec
	return with
}
