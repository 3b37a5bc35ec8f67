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
// Beside the commands of testscript there is
//
//	mask FILE
//	until PATTERN COMMAND...
//	soon VARIABLE DURATION
//	past TIME
//	bytes COUNT TEMPLATE FILE
//
// The first prints a file, or stdout or stderr of the last command, with what
// differs each time (UIDs, times, versions, temporary files) replaced by its name.
// The second repeats a command until what it prints matches. The third sets a
// variable to the time in so long; the fourth fails if a time is still to come.
// The last writes a file with so many bytes in the place of the word BYTES of
// another one. After a text was changed on purpose, this writes what is said now
// into the sessions, for the author to read in the diff:
//
//	go test ./test/kubectl -update
package kubectl
