package mutate

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// suspect returns warnings of legal but suspicious input.
func suspect(desired Desired) []string {
	var warnings []string
	for i, resource := range desired.Manifest {
		at := ResourcePath(i)
		if !isEmpty(resource["status"]) {
			warnings = append(warnings, at+".status: only the server writes it, and it is not observed")
		}
		warnings = slices.Concat(warnings, suspectEnd(resource, at), suspectPods(resource, at), suspectPins(desired.Schemas[i], resource, at))
	}
	return append(warnings, suspectScaling(desired)...)
}

// suspectScaling warns of observed replicas that an autoscaler of the same manifest sets.
func suspectScaling(desired Desired) []string {
	var warnings []string
	for _, scaler := range desired.Manifest {
		kind, name := apitypes.ScaleTarget(scaler)
		for i, resource := range desired.Manifest {
			id, err := manifest.Identify(resource)
			if err != nil || id.Name != name || id.Kind != kind || !desired.Schemas[i].Observes("spec", "replicas") {
				continue
			}
			warnings = append(warnings, fmt.Sprintf(
				"%s.spec.replicas: it is observed, so the agent reverts the value that the %s sets: leave it out of the manifest, or of the observer schema",
				ResourcePath(i), scaler["kind"]))
		}
	}
	return warnings
}

// suspectEnd warns of objects that end by their own rules.
func suspectEnd(resource map[string]any, at string) []string {
	id, _ := manifest.Identify(resource)
	spec := below(resource, "spec")
	switch {
	case id.GroupVersionKind().GroupKind().String() == "Job.batch" && spec["ttlSecondsAfterFinished"] != nil:
		return []string{at + ".spec.ttlSecondsAfterFinished: the cluster deletes the Job when it has finished: it then counts as done, and runs again only when its manifest changes"}
	case isCore(resource, "Pod") && spec["restartPolicy"] == string(corev1.RestartPolicyNever):
		return []string{at + ".spec.restartPolicy: nothing starts this Pod again when it ends or its node goes, and it runs again if it is deleted: a Job or a Deployment does better"}
	}
	return nil
}

// suspectDeletion says that the definitions of kinds stay when the Application is deleted, unless the user has said what
// becomes of them.
func suspectDeletion(cm *corev1.ConfigMap, wanted []manifest.ID) []string {
	definition := slices.IndexFunc(wanted, manifest.ID.IsDefinition)
	if _, ok := cm.Annotations[application.DeletionPolicyAnnotation]; ok || definition < 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: a definition stays when the Application is deleted, because all objects of its kind would go with it: set annotation %s to %s or %s",
		ResourcePath(definition), application.DeletionPolicyAnnotation, application.Delete, application.Orphan)}
}

// assigned returns the fields of a kind's spec that a server assigns once.
func assigned(id manifest.ID) []string {
	switch id.APIVersion + " " + id.Kind {
	case "v1 Service":
		return []string{"clusterIP", "clusterIPs", "healthCheckNodePort"}
	case "v1 PersistentVolumeClaim":
		return []string{"volumeName"}
	case "batch/v1 Job":
		return []string{"selector"}
	}
	return nil
}

// suspectPins warns of an observer schema that observes server-assigned fields without a value.
func suspectPins(observed schema.Schema, resource map[string]any, at string) []string {
	var warnings []string
	for _, name := range assigned(observed.ID()) {
		if _, given := below(resource, "spec")[name]; !given && observed.Observes("spec", name) {
			warnings = append(warnings, fmt.Sprintf(
				"%s.spec.%s: the server assigns it: the agent keeps the first value, which differs on each cluster", at, name))
		}
	}
	return warnings
}

// suspectPods warns of Pods that the baseline of the Pod Security Standards would refuse:
// privileged Pods, and Pods that access the node.
func suspectPods(resource map[string]any, at string) []string {
	id, _ := manifest.Identify(resource)
	path, runsPods := apitypes.PodPath(id)
	template := below(resource, path...)
	spec := below(template, "spec")
	if !runsPods || spec == nil || id.GroupVersionKind().Version != "v1" {
		return nil
	}
	var pod corev1.PodSpec
	if err := apitypes.Read(spec, &pod); err != nil {
		return nil // refused already
	}
	baseline, err := baseline()
	if err != nil {
		return nil // unreachable with the checks of the library
	}
	annotations := map[string]string{}
	for name, value := range below(template, "metadata", "annotations") {
		annotations[name], _ = value.(string)
	}
	results := baseline.EvaluatePod(
		psa.LevelVersion{Level: psa.LevelBaseline, Version: psa.LatestVersion()}, &metav1.ObjectMeta{Annotations: annotations}, &pod)
	result := policy.AggregateCheckResults(results)
	if result.Allowed {
		return nil
	}
	return []string{fmt.Sprintf("%s: a namespace with Pod Security baseline will refuse its Pods: %s", at, result.ForbiddenReason())}
}

var baseline = sync.OnceValues(func() (policy.Evaluator, error) {
	return policy.NewEvaluator(policy.DefaultChecks(), nil)
})

// checkTypes refuses values that the API server could not read. It only warns of fields that a type
// does not have, because the type of a newer server may have them.
func checkTypes(resources []map[string]any) (warnings []string, refusals field.ErrorList) {
	for i, resource := range resources {
		unknown, unreadable := apitypes.Check(resource)
		for _, mismatch := range unreadable {
			if mismatch.Field != "metadata.namespace" { // reported already
				refusals = append(refusals, invalid(strings.TrimSuffix(ResourcePath(i)+"."+mismatch.Field, "."), mismatch.Problem))
			}
		}
		for _, problem := range unknown {
			warnings = append(warnings, ResourcePath(i)+": "+problem)
		}
	}
	return warnings, refusals
}
