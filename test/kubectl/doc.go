// Package kubectl has user sessions with kubectl: the commands, the files, and the
// exact text that users read. Webhook, policies, agent and Habitat controllers are
// installed from manifests/ into a real cluster.
//
// Each file of testdata is a session in a namespace that is named after the file. The
// kubeconfig is that of edith, who has the ClusterRole edit there. With --as, a session
// acts as a user with fewer rights:
//
//   - carl has all rights on ConfigMaps, and no others;
//   - vera has the ClusterRole view.
//
// Package test/kubectl/session has the commands in addition to those of testscript. After an
// intended change of a text, this updates the sessions, for the author to read in the
// diff:
//
//	go test ./test/kubectl -update
package kubectl
