// Package kubectl has user sessions with kubectl and kubectl krake: the commands, the
// files, and the exact text that users read. They verify what the documentation
// describes. Webhook, policies, agent and Habitat controllers are installed from
// manifests/ into a real cluster.
//
// Each .txtar file of testdata is a session in a namespace that is named after the file:
//
//   - those of testdata itself have the kubeconfig of edith, who has the ClusterRole edit
//     there. With --as, a session acts as a user with fewer rights: carl has all rights on
//     ConfigMaps, and no others; vera has the ClusterRole view;
//   - those of pages are the commands of pages of the documentation, as an administrator;
//   - those of alone run one at a time, as an administrator, because a part of the
//     installation is down or removed.
//
// Package test/kubectl/session has the commands in addition to those of testscript. After an
// intended change of a text, this updates the sessions, for the author to read in the
// diff:
//
//	go test ./test/kubectl -update
package kubectl
