import { DigestMd5Client, nonceSource } from '@zabra/protocol'
import type { Random } from '@zabra/runtime'
import { anObject, aText, checkArgument, checkOptionsOf, withMethods, type Rule } from './checks.ts'
import type { SaslMechanism } from './client-options.ts'
import type { ServerAddress } from './platform.ts'

/** The credentials of a DIGEST-MD5 login. */
export interface DigestMd5Options {
  readonly username: string
  readonly password: string
  /** `zookeeper` unless the servers are configured otherwise. */
  readonly service?: string | undefined
  /**
   * The host name in the challenge of the server: `zk-sasl-md5` on any host, unless the servers are configured
   * otherwise.
   */
  readonly host?: string | undefined
  /** One of the realms of the server; the first one when absent. */
  readonly realm?: string | undefined
}

/** Starts a login on a connection to a server. */
export type DigestMd5Login = (server: ServerAddress) => SaslMechanism

const rules: { readonly [K in keyof Required<DigestMd5Options>]: Rule } = {
  username: aText,
  password: aText,
  service: aText,
  host: aText,
  realm: aText,
}

/** Returns a factory of DIGEST-MD5 logins with nonces from a source of unpredictable bytes. */
export const digestMd5With = (
  random: Pick<Random, 'bytes'>,
): ((options: DigestMd5Options) => DigestMd5Login) => {
  checkArgument('digestMd5With', 'a source of bytes', random, ['an object with bytes', withMethods('bytes')])
  return (options) => {
    checkArgument('digestMd5', 'credentials', options, anObject)
    checkOptionsOf('digestMd5', options, rules)
    for (const name of ['username', 'password'] as const)
      checkArgument('digestMd5', `the ${name}`, options[name], aText)
    return () => login(random, options)
  }
}

function login(random: Pick<Random, 'bytes'>, options: DigestMd5Options): SaslMechanism {
  const mechanism = new DigestMd5Client({
    ...options,
    cnonce: nonceSource((length) => random.bytes(length)),
  })
  return { name: mechanism.name, step: (challenge) => mechanism.step(challenge) }
}
