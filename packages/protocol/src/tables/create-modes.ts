/** Flags of a create request. */
export const CreateMode = {
  PERSISTENT: 0,
  EPHEMERAL: 1,
  PERSISTENT_SEQUENTIAL: 2,
  EPHEMERAL_SEQUENTIAL: 3,
  CONTAINER: 4,
  PERSISTENT_WITH_TTL: 5,
  PERSISTENT_SEQUENTIAL_WITH_TTL: 6,
} as const
export type CreateMode = (typeof CreateMode)[keyof typeof CreateMode]

const sequential = 0b1001100
const ephemeral = 0b0001010
const ttl = 0b1100000
const has = (set: number, flags: number): boolean => flags >= 0 && flags < 7 && (set & (1 << flags)) !== 0

export const isCreateMode = (flags: number): flags is CreateMode => flags >= 0 && flags <= 6
/** Returns whether a sequence number is appended to the name. */
export const isSequential = (flags: number): boolean => has(sequential, flags)
export const isEphemeral = (flags: number): boolean => has(ephemeral, flags)
export const isTtl = (flags: number): boolean => has(ttl, flags)

// Literals: a bundler keeps shifts of bigints in applications that do not use them.
/** Owner field of a container: the lowest signed 64-bit number. */
export const CONTAINER_OWNER: bigint = -0x8000_0000_0000_0000n
/** Longest TTL in milliseconds: 40 bits, nearly 35 years. */
export const MAX_TTL = 0xff_ffff_ffff

/** The top byte is ff. */
const TTL_MARK = -0x0100_0000_0000_0000n
const TTL_MASK = 0xff_ffff_ffffn

/** Returns the owner field of a node with a TTL of `ms` milliseconds. Throws a RangeError outside 1 to `MAX_TTL`. */
export function ttlOwner(ms: number): bigint {
  if (!Number.isInteger(ms) || ms < 1 || ms > MAX_TTL) {
    throw new RangeError(`Expected a time to live of 1 to ${MAX_TTL} ms, got ${ms}`)
  }
  return TTL_MARK | BigInt(ms)
}

export type OwnerKind = 'persistent' | 'ephemeral' | 'container' | 'ttl'

export interface OwnerRules {
  /** Whether owner fields with the top byte ff are extended types (`zookeeper.extendedTypesEnabled`). */
  readonly extendedTypes: boolean
  /** Whether the TTL format of ZooKeeper 3.5.3 is supported too (`zookeeper.emulate353TTLNodes`). */
  readonly emulate353?: boolean | undefined
}

/**
 * Returns the type of a node by its owner field (`EphemeralType`). Throws a RangeError for reserved types, which this server never
 * writes.
 */
export function ownerKind(owner: bigint, { extendedTypes, emulate353 = false }: OwnerRules): OwnerKind {
  if (owner === 0n) return 'persistent'
  if (owner === CONTAINER_OWNER) return 'container'
  if (owner > 0n) return 'ephemeral'
  if (emulate353 && (owner & TTL_MARK) !== TTL_MARK) return 'ttl'
  if (!extendedTypes || (owner & TTL_MARK) !== TTL_MARK) return 'ephemeral'
  if (((owner >> 40n) & 0xffffn) !== 0n) {
    throw new RangeError(
      `Expected node type 0 in owner ${BigInt.asUintN(64, owner).toString(16)}, got a reserved one`,
    )
  }
  return 'ttl'
}

/** Returns the TTL in an owner field of kind `ttl`, in milliseconds. */
export const ttlOf = (owner: bigint): number =>
  (owner & TTL_MARK) === TTL_MARK ? Number(owner & TTL_MASK) : Number(BigInt.asUintN(63, owner))
