// SPDX-FileCopyrightText: The swell authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// keyLifetime is far longer than a run.
const keyLifetime = 365 * 24 * time.Hour

// keys are the secrets of one cluster, all PEM. They are made anew for each run.
type keys struct {
	CA             []byte // certificate that signed Cert; its key is forgotten
	Cert, Key      []byte // the API server's
	ServiceAccount []byte // private key that signs and proves ServiceAccount tokens
}

// newKeys makes the keys of one cluster; serviceIP is the address of its
// "kubernetes" Service. ECDSA, because RSA takes a noticeable part of a start.
func newKeys(cluster string, serviceIP net.IP) (keys, error) {
	k, err := makeKeys(cluster, serviceIP)
	if err != nil {
		return keys{}, fmt.Errorf("keys: %w", err)
	}
	return k, nil
}

func makeKeys(cluster string, serviceIP net.IP) (k keys, err error) {
	caKey, _, err := newKey()
	if err != nil {
		return k, err
	}
	serverKey, serverPEM, err := newKey()
	if err != nil {
		return k, err
	}
	_, accountPEM, err := newKey()
	if err != nil {
		return k, err
	}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "devcluster " + cluster},
		NotBefore:             now.Add(-time.Hour), // for clocks that are a little behind
		NotAfter:              now.Add(keyLifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: apiserverName},
		NotBefore:    ca.NotBefore,
		NotAfter:     ca.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses:  []net.IP{net.ParseIP(loopback), serviceIP},
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return k, err
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, ca, serverKey.Public(), caKey)
	if err != nil {
		return k, err
	}
	return keys{
		CA:             pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
		Cert:           pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: serverDER}),
		Key:            serverPEM,
		ServiceAccount: accountPEM,
	}, nil
}

// newKey makes a private key, also as PEM in the form that Kubernetes reads.
func newKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
