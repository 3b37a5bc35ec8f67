// Package kubectl has sessions of people with kubectl: what they type, what is
// in their files, and to the letter what they then read, of webhook, policies,
// agent and what carries out Habitats as they are installed from manifests/ into a
// real cluster.
//
// Each file of testdata is a session in a namespace of its own, which is named
// after the file. The kubeconfig is that of edith, who has the ClusterRole edit
// there. With --as come those who may do less:
//
//   - carl does everything with ConfigMaps, and nothing else;
//   - vera has the ClusterRole view.
//
// The commands beside those of testscript are in test/session. After a text was
// changed on purpose, this writes what is said now into the sessions, for the author to
// read in the diff:
//
//	go test ./test/kubectl -update
package kubectl
