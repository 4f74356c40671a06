// SPDX-License-Identifier: Apache-2.0

// Kubelet-stub speaks the kubelet's side of a DRA driver's sockets, one call a run:
//
//	kubelet-stub register REGISTRATION_SOCKET
//	kubelet-stub prepare|unprepare DRIVER_SOCKET NAMESPACE CLAIM UID
//
// The answer goes to standard output as JSON. Exit 1 when the driver says that it failed, 2 for
// wrong usage. It decides nothing: which claims to prepare, and when, is up to the caller.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	dra "k8s.io/kubelet/pkg/apis/dra/v1"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// A driver may have to reset a GPU first.
const callTimeout = 60 * time.Second

func main() {
	if len(os.Args) < 3 {
		usage()
	}
	connection, err := grpc.NewClient("unix://"+os.Args[2],
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fail(err)
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()

	switch {
	case os.Args[1] == "register" && len(os.Args) == 3:
		err = register(ctx, registration.NewRegistrationClient(connection))
	case os.Args[1] == "prepare" && len(os.Args) == 6:
		err = prepare(ctx, dra.NewDRAPluginClient(connection), claimOf(os.Args[3:]))
	case os.Args[1] == "unprepare" && len(os.Args) == 6:
		err = unprepare(ctx, dra.NewDRAPluginClient(connection), claimOf(os.Args[3:]))
	default:
		usage()
	}
	if err != nil {
		fail(err)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: kubelet-stub register SOCKET | prepare|unprepare SOCKET NAMESPACE CLAIM UID")
	os.Exit(2)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "kubelet-stub:", err)
	os.Exit(1)
}

func claimOf(words []string) *dra.Claim {
	return &dra.Claim{Namespace: words[0], Name: words[1], Uid: words[2]}
}

func print(value any) error {
	return json.NewEncoder(os.Stdout).Encode(value)
}

// register does what the kubelet's plugin watcher does for a socket that it finds.
func register(ctx context.Context, client registration.RegistrationClient) error {
	info, err := client.GetInfo(ctx, &registration.InfoRequest{})
	if err != nil {
		return err
	}
	if _, err := client.NotifyRegistrationStatus(ctx,
		&registration.RegistrationStatus{PluginRegistered: true}); err != nil {
		return err
	}
	return print(map[string]any{"name": info.Name, "type": info.Type, "endpoint": info.Endpoint,
		"versions": info.SupportedVersions})
}

func prepare(ctx context.Context, client dra.DRAPluginClient, claim *dra.Claim) error {
	answer, err := client.NodePrepareResources(ctx,
		&dra.NodePrepareResourcesRequest{Claims: []*dra.Claim{claim}})
	if err != nil {
		return err
	}
	result := answer.Claims[claim.Uid]
	if result == nil {
		return fmt.Errorf("no answer for claim %s", claim.Uid)
	}
	if result.Error != "" {
		return fmt.Errorf("%s", result.Error)
	}
	devices := []map[string]any{}
	for _, device := range result.Devices {
		devices = append(devices, map[string]any{"requests": device.RequestNames, "pool": device.PoolName,
			"device": device.DeviceName, "cdi": device.CdiDeviceIds})
	}
	return print(devices)
}

func unprepare(ctx context.Context, client dra.DRAPluginClient, claim *dra.Claim) error {
	answer, err := client.NodeUnprepareResources(ctx,
		&dra.NodeUnprepareResourcesRequest{Claims: []*dra.Claim{claim}})
	if err != nil {
		return err
	}
	result := answer.Claims[claim.Uid]
	if result == nil {
		return fmt.Errorf("no answer for claim %s", claim.Uid)
	}
	if result.Error != "" {
		return fmt.Errorf("%s", result.Error)
	}
	return print(map[string]any{})
}
