# All servers in one image:
#   docker build -t krake-observer/krake-observer .
#
# Any builder with Go will do, and any base, scratch too:
#   docker build -t krake-observer/krake-observer --build-arg BASE=scratch .
ARG BUILDER=golang:1.26
ARG BASE=gcr.io/distroless/static:nonroot

FROM ${BUILDER} AS build
WORKDIR /source
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w" -o /out/ ./cmd/agent ./cmd/habitat ./cmd/webhook

FROM ${BASE}
# The certificate authorities to trust where a hub, or the server of a URL, has no
# authority of its own: scratch has none.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/agent /out/habitat /out/webhook /
USER 65532:65532
CMD ["/agent"]
