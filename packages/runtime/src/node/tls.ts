import { constants } from 'node:crypto'
import { isIP, type Socket } from 'node:net'
import {
  connect as connectTls,
  createSecureContext,
  createServer,
  type DetailedPeerCertificate,
  type SecureContextOptions,
  type Server,
  type TLSSocket,
} from 'node:tls'
import {
  NetworkError,
  type AbortSignalLike,
  type Address,
  type Connection,
  type Listener,
  type Network,
  type PeerIdentity,
} from '../network.ts'
import {
  CertificateError,
  TlsOptionError,
  type FileReads,
  type HandshakeStats,
  type OwnCertificate,
  type TlsNetwork,
  type TlsOptions,
  type TlsVersion,
} from '../tls.ts'
import { CUT_OFF, tlsFailureOf } from '../tls-faults.ts'
import type { identityOf } from './certificate.ts'
import { addressBlockOf } from '../address-block.ts'
import { AddressRecords } from './address-records.ts'
import { anyAddress } from './any-address.ts'
import { awaitHello } from './await-hello.ts'
import { openSslName } from './cipher-suites.ts'
import { KEY_EXCHANGE_GROUPS, MAX_HELLO_BYTES } from './client-hello.ts'
import { CertificateGuard, type GuardedSocket } from './guarded-socket.ts'
import { HandshakeQueue, nodeScheduler, type Handshake, type HandshakeOutcome } from './handshake-queue.ts'
import { listenForSockets, type ListenAt } from './network.ts'
import { remoteName, remoteOf, PendingSockets, type Remote } from './pending-sockets.ts'
import { crlsOf, readCrlFile } from './crl.ts'
import { RecordGuard } from './record-guard.ts'
import { connected, SocketConnection } from './socket-connection.ts'
import { detectTls } from './detect-tls.ts'
import { setBelow } from './wrapped-socket.ts'
import {
  trustedCertificatesOf,
  keyWithCertificatesOf,
  isSameStore,
  loadStore,
  type LoadedStore,
} from './keystores.ts'

/** Returns a network over TLS, with certificates from files. */
export function tlsNetwork(options: TlsOptions, reads?: FileReads): NodeTlsNetwork {
  return new NodeTlsNetwork(options, reads)
}

/** The contents of the files. */
interface Contents {
  readonly stores: readonly (LoadedStore | undefined)[]
  readonly revocations: Uint8Array | undefined
}

interface Credentials {
  readonly contents: Contents
  readonly certificate: OwnCertificate | undefined
  readonly context: SecureContextOptions
}

/** TLS 1.2 and 1.3, with certificates that can be reloaded at any time. */
export class NodeTlsNetwork implements TlsNetwork {
  readonly #options: TlsOptions
  readonly #reads: FileReads | undefined
  readonly #servers = new Set<Server>()
  readonly #pending = new Set<PendingSockets>()
  readonly #records = new AddressRecords()
  readonly #queue = new HandshakeQueue(nodeScheduler, this.#records)
  readonly #recordGuard = new RecordGuard(nodeScheduler)
  #exceeded = 0
  #failed = 0
  #credentials: Promise<Credentials> | undefined
  /** The last contents that could not be used, which are not parsed again. */
  #unusable: { readonly contents: Contents; readonly error: unknown } | undefined
  certificate: OwnCertificate | undefined

  constructor(options: TlsOptions, reads?: FileReads) {
    this.#options = options
    this.#reads = reads
  }

  get handshakes(): HandshakeStats {
    let open = 0
    for (const sockets of this.#pending) open += sockets.size
    return { active: open, rejected: this.#exceeded, failed: this.#failed }
  }

  listen(
    at: ListenAt,
    accepted: (connection: Connection) => void,
    refused?: (error: Error) => void,
  ): Promise<Listener> {
    return this.listenForSockets(at, (socket, peer) => accepted(connectionOf(socket, peer)), refused)
  }

  withPlaintext(): Network {
    return {
      listen: (at, accepted, refused) =>
        this.listenForSockets(
          at,
          (socket, peer) => accepted(connectionOf(socket, peer)),
          refused,
          (socket) => accepted(new SocketConnection(socket, { transport: 'tcp' })),
        ),
      connect: (to, options) => this.connect(to, options),
    }
  }

  /** Accepts sockets after their handshake, for a protocol on top of TLS. Plaintext sockets go to `plain`, if it is given. */
  async listenForSockets(
    at: ListenAt,
    accepted: (socket: TLSSocket, peer: PeerIdentity | undefined) => void,
    refused: (error: Error) => void = () => {},
    plain?: (socket: Socket) => void,
  ): Promise<Listener> {
    const { keyStore, clientAuth = 'none', handshakeLimit = 250, handshakeTimeoutMs = 10_000 } = this.#options
    if (keyStore === undefined)
      throw new CertificateError('A TLS listener needs a key store with its private key and certificate.', '')
    const { context } = await this.#current()
    const identify = clientAuth === 'none' ? undefined : await loadIdentityOf()
    const limits = {
      limit: handshakeLimit,
      timeoutMs: handshakeTimeoutMs,
      replacesOldest: this.#options.replacesHandshakes === true,
    }
    const pending = new PendingSockets('a TLS handshake', limits, this.#records)
    const failed = (error: Error): void => {
      this.#failed++
      refused(error)
    }
    const abandoned = (error: Error): void => {
      if ((error as NetworkError).code === 'ETOOMANY') this.#exceeded++
      else this.#failed++
      refused(error)
    }
    const server = createServer({
      ...context,
      requestCert: clientAuth !== 'none',
      // With `want`, clients without a certificate are accepted, so untrusted certificates are refused after the handshake.
      rejectUnauthorized: clientAuth === 'need',
      // `pending` has the timeout that counts.
      handshakeTimeout: handshakeTimeoutMs * 2,
    })
    const handshakes = new Map<string, { readonly handshake: Handshake; readonly raw: Socket }>()
    const guard = clientAuth === 'none' ? undefined : new CertificateGuard(server)
    const left = new LeftClients()
    server.on('secureConnection', (socket) => {
      const below = guard?.streamBelow(socket)
      if (below !== undefined) putAbove(socket, below)
      pending.ready(socket)
      const known = handshakes.get(remoteName(socket))
      // A client that has left already has no address any more; its place is free once the socket is closed.
      if (known !== undefined) {
        this.#queue.remove(known.handshake, outcomeOf(socket, known.raw))
        this.#guard(socket, below ?? known.raw)
      }
      socket.allowHalfOpen = true
      acceptSocket(socket, identify, accepted, failed)
    })
    server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
      // Node resets the socket of an untrusted client; the reason is in `authorizationError`.
      const { authorizationError: distrust } = socket
      if (distrust) {
        const { remoteAddress, remotePort } = guard?.streamBelow(socket) ?? left.only ?? socket
        const client = { remoteAddress, remotePort }
        return failed(handshakeError(client, String(distrust), 'its certificate is not trusted', error))
      }
      // A client that leaves during the handshake is not refused, and a timeout has been reported.
      if (error.code === 'ECONNRESET') return
      const { code = error.name } = error
      const report = (client: Remote): void =>
        failed(handshakeError(client, code, plaintextReasons[code] ?? error.message, error))
      const below = guard?.streamBelow(socket)
      if (guard !== undefined && below === undefined && socket.remoteAddress === undefined)
        guard.onClose((failing) => report(failing ?? socket))
      else report(below ?? socket)
    })
    const startHandshake = (socket: Socket): void => {
      if (!pending.admit(socket, abandoned)) return
      const name = remoteName(socket)
      const { remoteAddress, remotePort } = socket
      const refuse = (code: string, reason: string): void => {
        const error = handshakeError(socket, code, reason)
        socket.destroy()
        abandoned(error)
      }
      awaitHello(socket, {
        ready: ({ needsRetry, giveBack }) => {
          // From here on the queue closes those that take too long.
          pending.spoke(socket)
          const handshake: Handshake = {
            host: socket.remoteAddress ?? '',
            asksForCertificate: clientAuth !== 'none',
            needsRetry,
            start: () => {
              // It is closed in a turn that comes soon.
              if (socket.readableEnded) return
              giveBack()
              // A client that ends its direction during the handshake has left.
              socket.allowHalfOpen = false
              if (guard !== undefined && !this.#records.isTrusted(addressBlockOf(handshake.host)))
                guard.begin(socket, (reason) => refuse('EPROTO', reason))
              else server.emit('connection', socket)
            },
            abandon: (reason) => refuse('ETIMEDOUT', reason),
          }
          handshakes.set(name, { handshake, raw: socket })
          socket.once('close', () => {
            if (handshakes.get(name)?.raw === socket) handshakes.delete(name)
            left.add({ remoteAddress, remotePort })
            this.#queue.remove(handshake, { failedAfterBytes: socket.bytesRead })
          })
          this.#queue.add(handshake)
        },
        tooLong: () => refuse('EMSGSIZE', `its ClientHello is longer than ${MAX_HELLO_BYTES} bytes`),
        later: (read) => this.#queue.read(read),
      })
    }
    const onSocket =
      plain === undefined
        ? startHandshake
        : detectTls(
            new PendingSockets('its first byte', limits, this.#records),
            refused,
            startHandshake,
            plain,
          )
    const listener = await listenForSockets(at, onSocket, refused)
    this.#servers.add(server)
    this.#pending.add(pending)
    return {
      address: listener.address,
      close: () => {
        this.#servers.delete(server)
        this.#pending.delete(pending)
        return listener.close()
      },
    }
  }

  /** Cuts a connection that sends many records without data. */
  #guard(socket: TLSSocket, raw: Pick<Socket, 'bytesRead'>): void {
    const { remoteAddress = '' } = socket
    this.#recordGuard.add(socket, raw, (bytes) => {
      this.#queue.delay(remoteAddress, bytes)
      const reason = `it has sent ${bytes} bytes of TLS records without data`
      socket.destroy(new NetworkError(`${remoteName(socket)} is cut: ${reason}`, 'EPROTO'))
    })
    socket.once('close', () => this.#recordGuard.remove(socket))
  }

  async connect(to: Address, { signal }: { signal?: AbortSignalLike } = {}): Promise<Connection> {
    const options = await this.clientOptions()
    const identify = this.#options.identifiesServer === true ? await loadIdentityOf() : undefined
    const socket = connectTls({
      ...options,
      host: to.host,
      port: to.port,
      lookup: anyAddress,
      ...(isIP(to.host) === 0 ? { servername: to.host } : {}),
    })
    socket.setNoDelay(true)
    await connected(socket, 'secureConnect', to, signal).catch((error: NetworkError) => {
      throw error.cause instanceof Error ? handshakeFailed(error.cause, to, error) : error
    })
    const explain = (error: Error): Error => connectionFailed(error, to)
    const peerCertificates = certificatesOf(socket)
    try {
      const peer = identify && peerCertificates && identify(peerCertificates[0]!)
      return new SocketConnection(socket, { transport: 'tls', peer, peerCertificates, explain })
    } catch (error) {
      socket.on('error', () => {}).destroy()
      throw new NetworkError(
        `Cannot connect to ${to.host}:${to.port} (EPROTO): its certificate is not in DER`,
        'EPROTO',
        { cause: error },
      )
    }
  }

  /** Resolves to the TLS options of a client of another protocol: certificates, versions, cipher suites, check of names. */
  async clientOptions(): Promise<SecureContextOptions & { checkServerIdentity?: () => undefined }> {
    const { context } = await this.#current()
    return {
      ...context,
      ...(this.#options.verifyHostName === false ? { checkServerIdentity: () => undefined } : {}),
    }
  }

  async reload(): Promise<boolean> {
    const before = await this.#current()
    const contents = await this.#read()
    if (areSame(contents, before.contents)) return false
    if (this.#unusable !== undefined && areSame(contents, this.#unusable.contents)) throw this.#unusable.error
    const credentials = await this.#prepare(contents).catch((error: unknown) => {
      this.#unusable = { contents, error }
      throw error
    })
    this.#unusable = undefined
    this.#credentials = Promise.resolve(credentials)
    this.certificate = credentials.certificate
    for (const server of this.#servers) server.setSecureContext(credentials.context)
    return true
  }

  #current(): Promise<Credentials> {
    this.#credentials ??= this.#read()
      .then(async (contents) => {
        const credentials = await this.#prepare(contents)
        this.certificate = credentials.certificate
        return credentials
      })
      .catch((error: unknown) => {
        this.#credentials = undefined
        throw error
      })
    return this.#credentials
  }

  #read(): Promise<Contents> {
    return this.#reads?.run(() => this.#readFiles()) ?? this.#readFiles()
  }

  async #readFiles(): Promise<Contents> {
    const { keyStore, trustStore, revocationList } = this.#options
    return {
      stores: [keyStore && (await loadStore(keyStore)), trustStore && (await loadStore(trustStore))],
      revocations: revocationList === undefined ? undefined : await readCrlFile(revocationList),
    }
  }

  async #prepare(contents: Contents): Promise<Credentials> {
    const { ciphers, revocationList = '' } = this.#options
    const versions = supportedVersions(this.#options)
    const { revocations } = contents
    const [keyStore, trustStore] = contents.stores
    const identity = keyStore && (await keyWithCertificatesOf(keyStore))
    const context: SecureContextOptions = {
      ...(identity && { key: identity.key, cert: identity.certificates }),
      ...(trustStore && { ca: await trustedCertificatesOf(trustStore) }),
      ...(revocations === undefined ? {} : { crl: crlsOf(revocations, revocationList) }),
      ...(ciphers && ciphers.length > 0
        ? { ciphers: ciphers.map(cipherName).join(':'), honorCipherOrder: true }
        : {}),
      ecdhCurve: KEY_EXCHANGE_GROUPS,
      minVersion: versions.includes('TLSv1.2') ? 'TLSv1.2' : 'TLSv1.3',
      maxVersion: versions.includes('TLSv1.3') ? 'TLSv1.3' : 'TLSv1.2',
      // A resumed session would skip the check of the certificate, which a new trust store may not trust any more.
      secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
    }
    try {
      createSecureContext(context)
    } catch (error) {
      const path = keyStore?.path ?? trustStore?.path ?? ''
      const reason = error instanceof Error ? error.message : String(error)
      throw new CertificateError(`${path} cannot be used: ${reason}. Create it again.`, path, {
        cause: error,
      })
    }
    // Without the key, which is in the context alone.
    const certificate = identity && { validUntil: identity.validUntil, subjectHash: identity.subjectHash }
    return { contents, context, certificate }
  }
}

/** Returns whether files had the same contents twice. */
const areSame = (a: Contents, b: Contents): boolean =>
  a.stores.every((store, i) => isSameStore(store, b.stores[i])) &&
  Buffer.compare(a.revocations ?? NONE, b.revocations ?? NONE) === 0

const NONE = new Uint8Array(0)

/** Loads the reader of certificates only where peers are identified: the library takes some megabytes. */
const loadIdentityOf = async (): Promise<typeof identityOf> => (await import('./certificate.ts')).identityOf

const connectionOf = (socket: TLSSocket, peer: PeerIdentity | undefined): Connection =>
  new SocketConnection(socket, { transport: 'tls', peer, peerCertificates: peer && certificatesOf(socket) })

/**
 * Returns what a complete handshake has shown of its client. A certificate that is not trusted counts as a failure, which it is only
 * where certificates are needed: its check takes as long where they are wanted.
 */
function outcomeOf(socket: TLSSocket, raw: Socket): HandshakeOutcome {
  if (socket.authorized) return { isTrusted: true }
  return socket.getPeerX509Certificate() === undefined ? {} : { failedAfterBytes: raw.bytesRead }
}

/** Accepts a socket whose handshake is complete, or refuses it when its certificate is not trusted or cannot be read. */
function acceptSocket(
  socket: TLSSocket,
  identify: typeof identityOf | undefined,
  accepted: (socket: TLSSocket, peer: PeerIdentity | undefined) => void,
  refused: (error: Error) => void,
): void {
  const refuse = (code: string, reason: string, cause?: Error): void => {
    const error = handshakeError(socket, code, reason, cause)
    socket.on('error', () => {}).destroy()
    refused(error)
  }
  const certificate = identify && socket.getPeerCertificate().raw
  if (certificate !== undefined && !socket.authorized)
    return refuse(String(socket.authorizationError), 'its certificate is not trusted')
  let peer: PeerIdentity | undefined
  try {
    if (certificate !== undefined) peer = identify!(certificate)
  } catch (error) {
    // OpenSSL accepts encodings that DER forbids. Such a certificate gives no identity, and must not end the process.
    return refuse('EPROTO', 'its certificate is not in DER', error as Error)
  }
  accepted(socket, peer)
}

/** Returns the versions that have a cipher suite: OpenSSL adds default suites to a list without any for TLS 1.3. */
function supportedVersions({
  versions = ['TLSv1.2', 'TLSv1.3'],
  ciphers = [],
}: TlsOptions): readonly TlsVersion[] {
  if (ciphers.length === 0) return versions
  const isTls13 = (suite: string): boolean => /^TLS_(AES|CHACHA20)_/.test(suite)
  const supported = versions.filter((version) =>
    ciphers.some((suite) => isTls13(suite) === (version === 'TLSv1.3')),
  )
  if (supported.length > 0) return supported
  throw new TlsOptionError(
    `Expected a cipher suite for ${versions.join(' or ')}, got ${ciphers.join(', ')}. Those of TLSv1.3 begin with TLS_AES_ or TLS_CHACHA20_.`,
  )
}

function cipherName(suite: string): string {
  const name = openSslName(suite)
  if (name !== undefined) return name
  throw new TlsOptionError(
    `Expected cipher suites that this platform has, got "${suite}". TLS_AES_128_GCM_SHA256 and TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 are two of them.`,
  )
}

/** Returns an error that says in words why a TLS handshake failed; `otherwise` for an error that is not of TLS. */
function handshakeFailed(error: Error, to: Address, otherwise: Error): Error {
  const tlsFailure = tlsFailureOf(error)
  const { code } = error as NodeJS.ErrnoException
  if (tlsFailure === undefined && code !== 'ECONNRESET') return otherwise
  const { code: known, reason } = tlsFailure ?? { code: 'ECONNRESET', reason: CUT_OFF }
  const message = `Cannot connect to ${to.host}:${to.port} (${known}): ${reason}`
  return new NetworkError(message, known, { cause: error, tlsFailure })
}

/**
 * Returns the error to report for an open socket. With TLS 1.3 a server refuses the certificate of a client when the handshake is
 * over for the client.
 */
function connectionFailed(error: Error, to: Address): Error {
  const tlsFailure = tlsFailureOf(error)
  if (tlsFailure === undefined) return error
  const { code, fault } = tlsFailure
  if (fault === 'clientCertificate' || fault === 'handshakeFailure') return handshakeFailed(error, to, error)
  return new NetworkError(`The TLS connection to ${to.host}:${to.port} broke (${code})`, code, {
    cause: error,
  })
}

/** What a client has done that sends bytes of another protocol, by the error code of OpenSSL. */
const plaintextReasons: Readonly<Record<string, string>> = {
  ERR_SSL_WRONG_VERSION_NUMBER: 'it sent plaintext where TLS was expected',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it sent plaintext where TLS was expected',
  ERR_SSL_HTTP_REQUEST: 'it sent a plaintext HTTP request where TLS was expected',
}

/**
 * Clients whose sockets have closed in this iteration of the event loop. Node names no address in its error for one that it has reset
 * itself, which follows the end of the socket below at once.
 */
class LeftClients {
  readonly #clients: Remote[] = []

  /** The client if it is the only one. */
  get only(): Remote | undefined {
    return this.#clients.length === 1 ? this.#clients[0] : undefined
  }

  add(client: Remote): void {
    if (this.#clients.push(client) === 1) setImmediate(() => this.#clients.splice(0))
  }
}

/** Has a socket know the stream below it, and its addresses. */
function putAbove(socket: TLSSocket, below: GuardedSocket): void {
  setBelow(socket, below)
  const get = (name: 'remoteAddress' | 'remotePort' | 'localAddress' | 'localPort') => ({
    get: () => below[name],
  })
  Object.defineProperties(socket, {
    remoteAddress: get('remoteAddress'),
    remotePort: get('remotePort'),
    localAddress: get('localAddress'),
    localPort: get('localPort'),
  })
}

function handshakeError(client: Remote, code: string, reason: string, cause?: Error): NetworkError {
  const message = `The TLS handshake of ${remoteName(client)} failed (${code}): ${reason}`
  return new NetworkError(message, code, { cause, remote: remoteOf(client) })
}

/** Returns the certificates that the peer has shown, in DER, its own first; undefined when it has shown none. */
function certificatesOf(socket: TLSSocket): readonly Uint8Array[] | undefined {
  const certificates: Uint8Array[] = []
  let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true)
  while (next?.raw !== undefined && !certificates.some((raw) => next!.raw.equals(raw))) {
    certificates.push(next.raw)
    next = next.issuerCertificate
  }
  return certificates.length === 0 ? undefined : certificates
}
