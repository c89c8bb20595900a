import { apacheWords, type LineFields } from './apache-words.ts'

/** A line of the log as pino gives it: the fields of each line, then those of its context. */
interface Fields extends LineFields {
  readonly time: number
  readonly level: number
  readonly part?: unknown
  readonly member?: number
}

const LEVELS: Readonly<Record<number, string>> = { 20: 'DEBUG', 30: 'INFO', 40: 'WARN', 50: 'ERROR' }
/** Control characters, and those that some readers take for the end of a line. */
// oxlint-disable-next-line no-control-regex -- these are what it looks for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g
const SHORT: Readonly<Record<string, string>> = {
  '\t': String.raw`\t`,
  '\n': String.raw`\n`,
  '\r': String.raw`\r`,
}

/**
 * Returns a line of JSON in the layout of Apache ZooKeeper, with its words, if it has some for the event, before the message, and the
 * other fields behind it as `key=value`. Times are UTC, as in the audit log. No text of a client can begin a line of its own.
 */
export function apacheLine(json: string): string {
  const line = JSON.parse(json) as Fields
  const { time, level, msg, part, member, ...fields } = line
  const words = apacheWords(line)
  const sentence = words === undefined ? msg : `${words}. ${msg}`
  const at = new Date(time).toISOString().replace('T', ' ').replace('.', ',').replace('Z', '')
  const rest = Object.entries(fields).map(([name, value]) => ` ${escaped(name)}=${valueOf(value)}`)
  const name = LEVELS[level] ?? String(level)
  return `${at} [myid:${escaped(String(member ?? ''))}] - ${name.padEnd(5)} [main:${titleOf(part)}] - ${escaped(sentence)}${rest.join('')}\n`
}

/** Returns the name of a part in the place of a class: `Election`. */
function titleOf(part: unknown): string {
  const name = escaped(typeof part === 'string' ? part : 'server')
  return name.charAt(0).toUpperCase() + name.slice(1)
}

/** Returns a value without blanks as it is, and others in quotes. */
function valueOf(value: unknown): string {
  const isBare = typeof value === 'string' && /^[^\s"=]+$/.test(value)
  return escaped(isBare ? value : JSON.stringify(value))
}

const escaped = (text: string): string =>
  text.replaceAll(
    CONTROL,
    (one) => SHORT[one] ?? String.raw`\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
