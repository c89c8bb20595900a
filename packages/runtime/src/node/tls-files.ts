/** Reads the files of a TLS network for a look at them: what a network takes of them, without a connection. */
import { X509Certificate } from 'node:crypto'
import { AsnConvert } from '@peculiar/asn1-schema'
import { Certificate, CertificateList } from '@peculiar/asn1-x509'
import type { TlsOptions } from '../tls.ts'
import { crlsOf, readCrlFile } from './crl.ts'
import { keyWithCertificatesOf, loadStore, trustedCertificatesOf } from './keystores.ts'
import { pemBlocks } from './pem.ts'

/** A certificate, without its key. */
export interface CertificateFacts {
  readonly certificate: X509Certificate
  /** The hash in its signature, where that is one which can be forged: MD5 or SHA-1. */
  readonly weakHash: string | undefined
}

/** A list of revoked certificates. */
export interface RevocationList {
  /** When the next list is due, after which this one counts no more, in milliseconds since 1970. */
  readonly nextUpdate: number | undefined
}

/** What a network over TLS takes from its files. */
export interface TlsFiles {
  /** The own certificate, the one that signed it, and so on; empty without a key store. */
  readonly chain: readonly CertificateFacts[]
  /** The trusted authorities; undefined without a trust store. */
  readonly authorities: readonly CertificateFacts[] | undefined
  readonly revocationLists: readonly RevocationList[]
}

/** Reads the files that the options name. Rejects with a `CertificateError` when a network could not use them; it names no secret. */
export async function readTlsFiles({ keyStore, trustStore, revocationList }: TlsOptions): Promise<TlsFiles> {
  const own = keyStore && (await keyWithCertificatesOf(await loadStore(keyStore)))
  const trusted = trustStore && (await trustedCertificatesOf(await loadStore(trustStore)))
  const lists = revocationList === undefined ? '' : crlsOf(await readCrlFile(revocationList), revocationList)
  return {
    chain: pemBlocks(own?.certificates ?? '', /^CERTIFICATE$/).map(factsOf),
    authorities: trusted?.map(factsOf),
    revocationLists: pemBlocks(lists, /^X509 CRL$/).map(listOf),
  }
}

const WEAK_HASHES: Readonly<Record<string, string>> = {
  '1.2.840.113549.1.1.4': 'MD5',
  '1.2.840.113549.1.1.5': 'SHA-1',
  '1.2.840.10040.4.3': 'SHA-1',
  '1.2.840.10045.4.1': 'SHA-1',
}

function factsOf(pem: string): CertificateFacts {
  const certificate = new X509Certificate(pem)
  const { signatureAlgorithm } = AsnConvert.parse(certificate.raw, Certificate)
  return { certificate, weakHash: WEAK_HASHES[signatureAlgorithm.algorithm] }
}

function listOf(pem: string): RevocationList {
  const bytes = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64')
  const { nextUpdate } = AsnConvert.parse(bytes, CertificateList).tbsCertList
  return { nextUpdate: nextUpdate?.getTime().getTime() }
}
