/** The client for browsers and other platforms with nothing but a WebSocket. Addresses are `ws://` or `wss://`. */
import { webSocketClientNetwork } from '@zabra/runtime/web'
import { connectWith, type ConnectOptions } from '../connect.ts'
import { digestMd5With, type DigestMd5Login, type DigestMd5Options } from '../sasl.ts'
import type { Client } from '../client-api.ts'
import { networkTransport } from '../transport.ts'
import { webPlatform } from './platform.ts'

export * from '../core.ts'

/** SASL DIGEST-MD5 for the option `sasl`: `digestMd5({ username, password })`. */
export const digestMd5 = (options: DigestMd5Options): DigestMd5Login =>
  digestMd5With(webPlatform.random)(options)

/** Opens a session and resolves when the server has granted it; see `connectWith`. */
export function connect(options: ConnectOptions): Promise<Client> {
  const network = webSocketClientNetwork()
  return connectWith(options, {
    transport: networkTransport({ ws: network, wss: network }),
    platform: webPlatform,
    warn: (message) => console.warn(message),
  })
}
