import { sha256 } from '@zabra/protocol'
import type { Disk } from '@zabra/runtime'
import type { AdminRole } from './roles.ts'

/** A token of the tokens file. */
interface Token {
  readonly name: string
  readonly roles: readonly AdminRole[]
  /** The SHA-256 of the token, in hexadecimal. */
  readonly hash: string
  /** The end of its validity, in milliseconds since 1970. */
  readonly notAfter: number
}

const ROLES: readonly string[] = ['metrics', 'view', 'operate', 'backup', 'admin']
/** A longer token is refused before it is hashed. */
const MAX_TOKEN = 1024
/** Tokens of a file at most. */
const MAX_TOKENS = 10_000

/** Holds the tokens of `admin.tokensFile`: their hashes, never the tokens. */
export class AdminTokens {
  readonly #byHash: ReadonlyMap<string, Token>
  readonly #byName: ReadonlyMap<string, Token>

  private constructor(tokens: readonly Token[]) {
    this.#byHash = new Map(tokens.map((token) => [token.hash, token]))
    this.#byName = new Map(tokens.map((token) => [token.name, token]))
  }

  static readonly none = new AdminTokens([])

  /** Reads the file. Rejects with an error that names the file, and the line where one is wrong. */
  static async read(disk: Disk, file: string): Promise<AdminTokens> {
    return AdminTokens.parse(file, new TextDecoder().decode(await disk.readFile(file)))
  }

  /** Parses a file of lines `name:role,role:sha256[:not-after]`. Throws an error that names the line, and never shows its hash. */
  static parse(file: string, text: string): AdminTokens {
    const tokens: Token[] = []
    const known = new Set<string>()
    for (const [index, line] of text.split('\n').entries()) {
      const bare = line.trim()
      if (bare === '' || bare.startsWith('#')) continue
      const token = parseLine(bare)
      if (typeof token === 'string') throw new Error(`${file}, line ${index + 1}: ${token}`)
      const keys = [`name ${token.name}`, `hash ${token.hash}`]
      if (keys.some((key) => known.has(key)))
        throw new Error(
          `${file}, line ${index + 1}: expected a name and a token of its own, got those of another line`,
        )
      for (const key of keys) known.add(key)
      tokens.push(token)
      if (tokens.length > MAX_TOKENS)
        throw new Error(`${file}: expected at most ${MAX_TOKENS} tokens, got more`)
    }
    return new AdminTokens(tokens)
  }

  /** Returns the name of a token that is valid at a time, in milliseconds since 1970. The look-up is by hash: its time shows nothing. */
  nameOf(token: string, now: number): string | undefined {
    if (token.length > MAX_TOKEN || this.#byHash.size === 0) return undefined
    const found = this.#byHash.get(hex(sha256(new TextEncoder().encode(token))))
    return found !== undefined && now <= found.notAfter ? found.name : undefined
  }

  /** Returns the roles that the file gives to a token. */
  rolesOf(name: string): readonly AdminRole[] {
    return this.#byName.get(name)?.roles ?? []
  }
}

/** Returns the token of a line, or what is wrong with the line. */
function parseLine(line: string): Token | string {
  const [, name, roles, hash, notAfter] = /^([^:]+):([^:]*):([^:]*)(?::(.*))?$/.exec(line) ?? []
  if (name === undefined) return 'expected name:role,role:sha256[:not-after]'
  const given = roles!.split(',').map((role) => role.trim())
  const unknown = given.find((role) => !ROLES.includes(role))
  if (unknown !== undefined)
    return `expected roles among ${ROLES.join(', ')}, got ${shown(unknown, /^\w{1,12}$/)}`
  if (!/^[\da-f]{64}$/i.test(hash!))
    return 'expected the SHA-256 of the token in 64 hexadecimal digits, as `printf %s TOKEN | sha256sum` prints it'
  const end = notAfter === undefined ? Infinity : Date.parse(notAfter)
  if (Number.isNaN(end))
    return `expected a date such as 2027-01-31 or 2027-01-31T12:00:00Z, got ${shown(notAfter!, /^[\d:.TZ+-]{1,40}$/)}`
  return { name, roles: given as AdminRole[], hash: hash!.toLowerCase(), notAfter: end }
}

/** Returns a text for an error, if it looks like what it should be: a token may be in its place. */
const shown = (text: string, usual: RegExp): string =>
  usual.test(text) ? JSON.stringify(text) : 'something else'

const hex = (bytes: Uint8Array): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
