import { DigestMd5Client, nonceSource } from '@zabra/protocol'
import type { Random } from '@zabra/runtime'
import type { SaslMechanism, ServerAddress } from './types.ts'

/** Who logs in by DIGEST-MD5. */
export interface DigestMd5Options {
  readonly username: string
  readonly password: string
  /** `zookeeper` unless the servers were told otherwise. */
  readonly service?: string
  /** What the servers call themselves in a login: `zk-sasl-md5` wherever they run, unless they were told otherwise. */
  readonly host?: string
  /** Which of the realms of a server; its first one when absent. */
  readonly realm?: string
}

/** Makes logins by DIGEST-MD5 with nonces from a source of unpredictable bytes. */
export const digestMd5With =
  (random: Pick<Random, 'bytes'>) =>
  (options: DigestMd5Options): ((server: ServerAddress) => SaslMechanism) =>
  () => {
    const mechanism = new DigestMd5Client({
      ...options,
      cnonce: nonceSource((length) => random.bytes(length)),
    })
    return { name: mechanism.name, step: (challenge) => mechanism.step(challenge) }
  }
