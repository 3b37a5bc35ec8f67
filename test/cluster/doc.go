// Package cluster provides a Kubernetes cluster for tests, on any machine that can build Go: without root,
// containers, or an installation.
//
// [Open] finds a cluster, or starts one. [Start] starts etcd, kube-apiserver and kube-controller-manager as
// processes of this machine, and [Build] builds these programs if the machine has none.
//
//	c, err := cluster.Open(ctx, cluster.Options{})
//	defer c.Stop()
//	client, err := kubernetes.NewForConfig(c.RESTConfig())
//	agent, err := c.Run("agent", exec.Command(path, "--kubeconfig", file))
//
// Such a cluster has a real API server with RBAC, admission, webhooks and audit, and real controllers:
// Deployments get ReplicaSets and Pods, namespaces are deleted, dependents are garbage-collected. It has no
// kubelet: no Pod ever runs, and no Service leads anywhere.
//
//	kubectl run busybox --image busybox // stays Pending
//
// With PretendKubelet in the [Options], a stand-in for the kubelet marks each Pod as running and ready.
// Deployments then become available, although no Pod runs.
//
// No process or file of a cluster outlives the program that started it, even if that is killed (see reaper).
// Containers of kind outlive a killed program: kind get clusters lists them.
//
// Environment variables:
//
//	KRAKE_E2E_KUBECONFIG  use this existing cluster (Open)
//	KRAKE_E2E_IMAGE       the image of webhook and agent that its nodes have, NAME:TAG: they run in Pods (Open)
//	KRAKE_E2E_AUDIT_LOG   the file that the existing cluster's audit log is in
//	E2E_TIER              existing, kind or local: this kind of cluster or none (Open)
//	KRAKE_KIND_NODE_IMAGE the image of the nodes of a cluster of kind (Open)
//	KRAKE_TEST_CLUSTER    the folder of a running local cluster that tests share (Shared)
//	KUBEBUILDER_ASSETS    the folder with etcd, kube-apiserver and the like (Build)
//	KRAKE_TEST_KUBERNETES another version of Kubernetes to build from modules, such as 1.33 (Build)
//	KRAKE_TEST_CACHE      where built programs are kept, instead of the user's cache folder (Build)
//	KRAKE_TEST_KEEP       if not empty, the folders of clusters are kept
//
// KUBECONFIG is not among them: a test runs only in a cluster that was chosen for it. Linux and macOS are
// supported.
package cluster
