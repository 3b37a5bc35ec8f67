// Package bench compares the pure engine, pkg/schema, with others on the same objects in the
// same run. The folder load beside it has the load bench, make bench.
//
//	cd test/bench && go test -run '^$' -bench . -count 6 > bench.txt
//	go tool benchstat -row "/op /object" -col /engine bench.txt
//
// That takes some minutes, and longer the first time, for the build. One of the other engines
// needs much of Kubernetes; therefore this is a separate module.
//
// The objects are a Deployment of 200 lines of YAML, a CustomResourceDefinition of 2,000
// lines, and a ConfigMap with 200 KiB of data. Each is a manifest, and an object that a
// server returned. It is compared as it is (compare), and with one changed value
// (compare-drift).
//
// The engines differ in what they do:
//
//	krake               pkg/schema: manifest and live object, under the default schema
//	krake-refined       the same, with the keys of lists and the forms that the server
//	                    gives to values (pkg/apitypes), as the agent compares
//	argocd              Argo CD's diff.Diff of manifest and live object. It also predicts
//	                    the live object after a sync, with defaults where it knows the
//	                    type: not that of a CustomResourceDefinition
//	deepequal           apimachinery's Semantic.DeepEqual of the live object and a copy of
//	                    it. It knows no fields to be left out, and stops at the first
//	                    difference, wherever the order of Go's maps has it
//	smd-typed           structured-merge-diff's Compare of the live object and a copy of it,
//	                    both converted before, with the type that the API has for them.
//	                    In it, the versions of a CustomResourceDefinition are one value
//	smd-typed+convert   the same, with the conversion of the live object
//
// deepequal and smd-typed compare with a copy of the live object, because with the manifest
// they would report every field that the server has added.
package bench
