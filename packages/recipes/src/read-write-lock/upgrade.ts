import { contendersInOrder, compareSequence, type ContenderParser } from '../lock-queue/contenders.ts'

/**
 * Returns whether a reader that has created a writer's znode at its own place is alone, so that it may become that
 * writer. It is not alone if another reader holds the lock, that is, precedes the first writer that is not itself
 * an upgrading reader. Later readers see the new znode and wait.
 */
export function isAlone(
  names: readonly string[],
  own: { read: string; write: string },
  parse: ContenderParser,
): boolean {
  const me = parse(own.read)
  if (me === undefined || !names.includes(own.read) || !names.includes(own.write)) return false
  const others = contendersInOrder(names, parse).filter(({ name }) => name !== own.read && name !== own.write)
  const readers = others.filter(({ isShared }) => isShared)
  const upgrading = new Set(readers.map(({ sequence }) => sequence))
  const writers = others.filter(({ isShared, sequence }) => !isShared && !upgrading.has(sequence))
  const [first] = writers
  if (first !== undefined && compareSequence(first.sequence, me.sequence) <= 0) return false
  return !readers.some(({ sequence }) => first === undefined || compareSequence(sequence, first.sequence) < 0)
}
