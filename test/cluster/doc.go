// Package cluster gives tests a Kubernetes cluster, on any machine that can
// build Go: no root, no containers, nothing to install.
//
// [Open] finds one, or starts one; [Start] starts etcd, kube-apiserver and
// kube-controller-manager as processes of this machine, and [Build] makes those
// programs when the machine has none.
//
//	c, err := cluster.Open(ctx, cluster.Options{})
//	defer c.Stop()
//	client, err := kubernetes.NewForConfig(c.RESTConfig())
//	agent, err := c.Run("agent", exec.Command(path, "--kubeconfig", file))
//
// What is real in such a cluster: the API server with RBAC, admission, webhooks
// and audit, and the controllers (Deployments get ReplicaSets and Pods objects,
// namespaces are deleted, owners are collected). What it does not have: a
// kubelet. No Pod ever runs, and no Service leads anywhere.
//
//	kubectl run busybox --image busybox // stays Pending
//
// With PretendKubelet among the [Options], a stand-in for the kubelet says of each Pod that it runs
// and is ready, so that Deployments come to be available. It still does not run.
//
// Nothing is left behind: neither a process nor a file of a cluster outlives
// the program that started it, not even if that is killed (see reaper). Containers of
// kind outlive a program that is killed: kind get clusters names them.
//
// The environment variables that are read:
//
//	KRAKE_E2E_KUBECONFIG  use this existing cluster (Open)
//	KRAKE_E2E_IMAGE       the image of webhook and agent that its nodes have, NAME:TAG: they run in Pods (Open)
//	KRAKE_E2E_AUDIT_LOG   the file that the existing cluster's audit log is in
//	E2E_TIER              existing, kind or local: this kind of cluster or none (Open)
//	KRAKE_KIND_NODE_IMAGE the image of the nodes of a cluster of kind (Open)
//	KRAKE_TEST_CLUSTER    the folder of a running local cluster that tests share (Shared)
//	KUBEBUILDER_ASSETS    the folder with etcd, kube-apiserver and the like (Build)
//	KRAKE_TEST_CACHE      where built programs are kept, instead of the user's cache folder (Build)
//	KRAKE_TEST_KEEP       if not empty, the folders of clusters are kept
//
// KUBECONFIG is not among them: a test never runs in a cluster that it was not
// given on purpose. Linux and macOS are supported.
package cluster
