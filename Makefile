# Nothing but Go is needed: what the tests run against is built from Go modules,
# once, and kept in the user's cache folder.

.PHONY: demo test lint cluster build

# The main job, live, on a real API server that is started for it.
demo:
	go run ./test/demo

# Everything: unit tests, the test cluster's own tests, and the end-to-end tests.
test: cluster
	go vet ./...
	go test -timeout 30m -count=1 ./...

# The programs of the test cluster: 4 to 7 minutes on 2 cores, the first time.
# Never inside go test, which would give up after its timeout.
cluster:
	go run ./test/cluster/run --build-only

# The linter comes from a module of its own, and takes minutes to build, the first time.
lint:
	cd tools && go build -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	bin/golangci-lint run ./...

build:
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/ ./cmd/...
