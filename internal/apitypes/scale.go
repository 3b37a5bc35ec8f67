package apitypes

// ScaleTarget returns the kind and the name of the object that an autoscaler scales: a
// HorizontalPodAutoscaler, or another kind that names its target in spec.scaleTargetRef. Without a
// kind, it is a Deployment, as in KEDA's ScaledObject. The name is empty for any other resource.
func ScaleTarget(resource map[string]any) (kind, name string) {
	spec, _ := resource["spec"].(map[string]any)
	target, _ := spec["scaleTargetRef"].(map[string]any)
	if kind, _ = target["kind"].(string); kind == "" {
		kind = "Deployment"
	}
	name, _ = target["name"].(string)
	return kind, name
}
