import { CertificateError, type TlsOptions } from '@zabra/runtime'
import { readTlsFiles, type CertificateFacts, type TlsFiles } from '@zabra/runtime/node/tls-files'
import { tlsUses, type ServerSettings, type TlsUse } from '@zabra/server/core'
import { MIN_CERTIFICATE_DAYS } from '@zabra/server/settings'
import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { rootCertificates } from 'node:tls'
import { finding, type Finding } from './finding.ts'

const DAY_MS = 86_400_000
/** Days before the end of a list of revoked certificates from which on it is reported. */
const MIN_LIST_DAYS = 2
const MIN_RSA_BITS = 2048
const MIN_CURVE_BITS = 224

/** Checks the files that a server uses for TLS. `now` in milliseconds since 1970. */
export async function* checkTls(settings: ServerSettings, now: number): AsyncGenerator<Finding> {
  const seen = new Set<string>()
  for (const use of tlsUses(settings))
    for await (const found of checkUse(use, settings, now)) {
      // Several ports may use the same files.
      const key = [found.id, found.where, found.evidence].join('\n')
      if (!seen.has(key)) yield found
      seen.add(key)
    }
}

async function* checkUse(
  { port, options }: TlsUse,
  settings: ServerSettings,
  now: number,
): AsyncGenerator<Finding> {
  const files = await read(options)
  if (files instanceof CertificateError)
    return yield finding(
      'tls-store',
      files.path || `TLS for ${port}`,
      files.message,
      'Mend what the message names: a server does not start with this file.',
    )
  const where = options.keyStore?.path ?? `TLS for ${port}`
  yield* checkChain(where, port, files)
  if (port === 'members') yield* checkNames(where, files, settings)
  for (const facts of files.chain) yield* checkCertificate(where, facts, now)
  for (const facts of files.authorities ?? []) yield* checkCertificate(options.trustStore!.path, facts, now)
  for (const { nextUpdate } of files.revocationLists)
    yield* checkList(options.revocationList!, nextUpdate, now)
}

async function read(options: TlsOptions): Promise<TlsFiles | CertificateError> {
  try {
    return await readTlsFiles(options)
  } catch (error) {
    if (error instanceof CertificateError) return error
    throw error
  }
}

/** Members trust each other by the same authorities, so a chain must end at one of them. The authorities of clients are not known here. */
function* checkChain(
  where: string,
  port: TlsUse['port'],
  { chain, authorities }: TlsFiles,
): Generator<Finding> {
  const last = chain.at(-1)?.certificate
  if (last === undefined) return
  const trusted = (authorities ?? []).map(({ certificate }) => certificate)
  const isTrusted = trusted.some(
    (one) =>
      one.fingerprint256 === last.fingerprint256 || (last.checkIssued(one) && last.verify(one.publicKey)),
  )
  if (isTrusted) return
  const isRoot = last.checkIssued(last) && last.verify(last.publicKey)
  if (port !== 'members' && (isRoot || isPublic(last.issuer))) return
  const evidence = `its chain ends at ${nameOf(last.subject)}, which ${isRoot ? 'signs itself' : `${nameOf(last.issuer)} has signed`}`
  if (port === 'members')
    yield finding(
      'tls-chain',
      where,
      `${evidence}, and the trust store has no such authority`,
      'Put the certificates between the own one and the authority into the key store, and the authority into ssl.quorum.trustStore.location of each member.',
    )
  else
    yield finding(
      'tls-chain-not-known',
      where,
      `${evidence}, and that certificate is not here`,
      `Where the authority that clients trust has not signed ${nameOf(last.subject)} itself, add the certificates between them to the key store.`,
    )
}

const isPublic = (issuer: string): boolean => issuers().has(issuer)
let publicIssuers: ReadonlySet<string> | undefined
const issuers = (): ReadonlySet<string> =>
  (publicIssuers ??= new Set(rootCertificates.map((pem) => new X509Certificate(pem).subject)))

/** Another member connects by the hosts of `server.N`, and looks for one of them in the certificate. */
function* checkNames(where: string, { chain }: TlsFiles, settings: ServerSettings): Generator<Finding> {
  const own = chain[0]?.certificate
  const { ensemble, serverId, quorumVerifiesHostNames } = settings
  if (own === undefined || !quorumVerifiesHostNames) return
  const hosts = ensemble?.members.get(serverId)?.addresses.map(({ host }) => host) ?? []
  const missing = hosts.filter((host) =>
    isIP(host) === 0
      ? own.checkHost(host, { subject: 'never' }) === undefined
      : own.checkIP(host) === undefined,
  )
  if (missing.length > 0)
    yield finding(
      'tls-name',
      where,
      `the certificate names ${own.subjectAltName ?? 'no host'}, and server.${serverId} is ${missing.join(' and ')}: other members refuse it`,
      `Issue it again for these hosts: zabra cert issue --member ${serverId} --hosts ${hosts.join(',')}.`,
    )
}

function* checkCertificate(
  where: string,
  { certificate, weakHash }: CertificateFacts,
  now: number,
): Generator<Finding> {
  const name = nameOf(certificate.subject)
  const [from, to] = [Date.parse(certificate.validFrom), Date.parse(certificate.validTo)]
  if (to <= now)
    yield finding(
      'tls-over',
      where,
      `the certificate of ${name} ended at ${new Date(to).toISOString()}`,
      'Renew it: zabra cert renew, or by its authority. Servers read new files while they run.',
    )
  else if (from > now)
    yield finding(
      'tls-over',
      where,
      `the certificate of ${name} begins at ${new Date(from).toISOString()}`,
      'Check the clock of this machine, or issue it again.',
    )
  else if (to - now < MIN_CERTIFICATE_DAYS * DAY_MS)
    yield finding(
      'tls-ends',
      where,
      `the certificate of ${name} ends in ${days(to - now)}`,
      'Renew it: zabra cert renew, or by its authority. Servers read new files while they run.',
    )
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = certificate.publicKey
  const bits = details?.modulusLength
  const curve = Number(/(\d{3})/.exec(details?.namedCurve ?? '')?.[1] ?? Infinity)
  const weakKey =
    bits !== undefined && bits < MIN_RSA_BITS
      ? `a key ${type?.toUpperCase()} of ${bits} bits`
      : curve < MIN_CURVE_BITS
        ? `a key on the curve ${details!.namedCurve}`
        : undefined
  // An authority is trusted as a whole, and not for its own signature.
  const isRoot = certificate.subject === certificate.issuer
  const weakness = weakKey ?? (weakHash === undefined || isRoot ? undefined : `a signature with ${weakHash}`)
  if (weakness !== undefined)
    yield finding(
      'tls-weak',
      where,
      `the certificate of ${name} has ${weakness}`,
      'Issue it again with a key on P-256 or RSA of 2048 bits, and SHA-256: zabra cert issue does.',
    )
}

function* checkList(where: string, nextUpdate: number | undefined, now: number): Generator<Finding> {
  if (nextUpdate === undefined || nextUpdate - now > MIN_LIST_DAYS * DAY_MS) return
  const remedy = 'Get the new list from the authority; a server reads it while it runs.'
  if (nextUpdate > now)
    yield finding('tls-list-ends', where, `the list ends in ${days(nextUpdate - now)}`, remedy)
  else
    yield finding(
      'tls-list-over',
      where,
      `the list ended at ${new Date(nextUpdate).toISOString()}, so all certificates are refused`,
      remedy,
    )
}

function days(ms: number): string {
  const number = Math.floor(ms / DAY_MS)
  return number === 1 ? 'a day' : number < 1 ? 'less than a day' : `${number} days`
}

/** Returns a name on one line, as `O=Zabra, CN=localhost`. */
const nameOf = (subject: string): string => subject.replaceAll('\n', ', ') || 'no name'
