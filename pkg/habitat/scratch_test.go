package habitat_test
import ("testing";"fmt"
 corev1 "k8s.io/api/core/v1"
 metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
 "sigs.k8s.io/yaml"
 "github.com/krake-observer/krake-observer/pkg/mutate"
 "github.com/krake-observer/krake-observer/pkg/schema"
 "github.com/krake-observer/krake-observer/pkg/apitypes"
 "github.com/krake-observer/krake-observer/pkg/habitat")
func TestScratch(t *testing.T){
 text := `
metadata: {name: a, namespace: shop}
customVersion: v1beta2
spec:
  v1beta2:
    count: 0
    image: a:1
    env: [{name: A, value: x}, {name: A, value: ""}, {name: B, value: ""}, {name: C, value: "", valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1}}}]
    persistentStorage: {size: 2048Mi, mountPath: /x}
    service: {name: a, topology: leader, filesSecretName: b}
`
 var o map[string]any
 if err := yaml.Unmarshal([]byte(text), &o); err != nil {t.Fatal(err)}
 o["spec"].(map[string]any)["v1beta2"].(map[string]any)["count"]=int64(1)
 o["spec"].(map[string]any)["v1beta2"].(map[string]any)["env"].([]any)[3].(map[string]any)["valueFrom"].(map[string]any)["resourceFieldRef"].(map[string]any)["divisor"]=int64(1)
 h, errs := habitat.Parse(o)
 if len(errs)>0 {t.Fatal(errs)}
 w := h.Workload("busybox")
 b,_ := yaml.Marshal(w)
 d,_ := schema.Default(w)
 s,_ := yaml.Marshal(d.Document())
 cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name:"habitat-a",Namespace:"shop",Annotations: map[string]string{"krake.dev/application":"v1"}}, Data: map[string]string{"spec.manifest":string(b),"spec.observer_schema":string(s)}}
 p := mutate.PrepareForCreate(cm)
 fmt.Println(p.Refusals, p.Warnings)
 live,err := apitypes.Written(w)
 fmt.Println(err)
 r := apitypes.BuiltIn().Refine(d,w)
 fmt.Println(r.Compare(w,live))
 lb,_ := yaml.Marshal(live); fmt.Println(string(lb))
}
