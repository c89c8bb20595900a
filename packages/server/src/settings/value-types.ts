import * as z from 'zod/mini'

/** A type of value: how its text is read, which values a program can pass, and how both are described. */
export interface ValueType<T> {
  /** Returns the value of a text of a file, a flag or a variable, or undefined when the text is not as expected. */
  readonly read: (text: string) => T | undefined
  /** Returns whether a program can pass a value. */
  readonly accepts: (value: unknown) => boolean
  /** Accepted values; completes the sentence "expected …". */
  readonly expected: string
  /** Unit of a bare number, for the reference page; empty for none. */
  readonly unit: string
  /** Formats a value for operators. */
  readonly show: (value: T) => string
  /** Returns how Apache ZooKeeper interprets an accepted text, if it does so differently. */
  readonly apacheReading?: (text: string) => string | undefined
}

/** The parts of a `ValueType` that differ from type to type. */
type Parts<T> = Pick<ValueType<T>, 'read' | 'expected' | 'apacheReading'> &
  Partial<Pick<ValueType<T>, 'unit' | 'show'>> & {
    /** Builds the schema of a value. Called once a value is checked: most settings of a server keep their defaults. */
    readonly schema: () => z.ZodMiniType<T>
  }

export function valueType<T>({ schema, read, ...described }: Parts<T>): ValueType<T> {
  let built: z.ZodMiniType<T> | undefined
  const accepts = (value: unknown): boolean => (built ??= schema()).safeParse(value).success
  return {
    unit: '',
    show: String,
    ...described,
    accepts,
    read(text) {
      const value = read(text.trim())
      return value !== undefined && accepts(value) ? value : undefined
    },
  }
}

const integerPattern = /^[+-]?\d+$/

function readInteger(text: string): number | undefined {
  if (!integerPattern.test(text)) return undefined
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : undefined
}

function range(min: number, max: number): string {
  if (max >= 2 ** 31 - 1) return min === -Infinity ? '' : ` from ${min} up`
  return ` from ${min} to ${max}`
}

/** An integer. */
export function integer(min: number, max = 2 ** 31 - 1): ValueType<number> {
  return valueType({
    schema: () => z.int().check(z.minimum(min), z.maximum(max)),
    read: readInteger,
    expected: `a whole number${range(min, max)}`,
  })
}

/** A TCP port; 0 means a free one that the operating system chooses. */
export function port(): ValueType<number> {
  return { ...integer(0, 65_535), expected: 'a TCP port from 0 to 65535 (0 picks a free one)' }
}

/** A number with a fraction. */
export function decimal(min: number, max: number): ValueType<number> {
  return valueType({
    schema: () => z.number().check(z.minimum(min), z.maximum(max)),
    read: (text) => (/^[+-]?(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : undefined),
    expected: `a number from ${min} to ${max}`,
  })
}

const milliseconds = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** The longest time in whole days that fits into 32 bits of milliseconds; longer ones overflow timers. */
const longestMs = 24 * milliseconds.d

/**
 * A duration, stored in milliseconds. A bare number is in `unit`, as in Apache ZooKeeper; Zabra also accepts a suffix.
 * With `negativeIsOff`, negative numbers are stored as 0, which then means "off".
 */
export function duration(
  unit: keyof typeof milliseconds,
  options: { min?: number; max?: number; negativeIsOff?: boolean } = {},
): ValueType<number> {
  const { min = 0, max = longestMs, negativeIsOff = false } = options
  const off = negativeIsOff ? ', a negative number for off' : ''
  const expected = `a time from ${showDuration(min)} to ${showDuration(max)}, as a bare number of ${unitNames[unit]} or with ms, s, m, h or d${off}`
  const read = (text: string): number | undefined => {
    if (negativeIsOff && /^-\d+$/.test(text)) return 0
    const match = /^(\d+)\s*(ms|s|m|h|d)?$/i.exec(text)
    if (!match) return undefined
    return (
      Number(match[1]) *
      milliseconds[(match[2]?.toLowerCase() as keyof typeof milliseconds | undefined) ?? unit]
    )
  }
  const misread = (text: string): string | undefined =>
    /^\d+\s*[a-z]+$/i.test(text) && unit !== 'h'
      ? `ZooKeeper takes a bare number of ${unitNames[unit]} here`
      : undefined
  return valueType({
    schema: () => z.int().check(z.minimum(min), z.maximum(max)),
    read,
    expected,
    unit: unitNames[unit],
    show: showDuration,
    apacheReading: misread,
  })
}

const unitNames = { ms: 'milliseconds', s: 'seconds', m: 'minutes', h: 'hours', d: 'days' } as const

/** Formats a duration in the largest unit that divides it: 90000 as `90 s`. */
export function showDuration(ms: number): string {
  if (ms === 0) return '0'
  for (const unit of ['d', 'h', 'm', 's'] as const)
    if (ms % milliseconds[unit] === 0) return `${ms / milliseconds[unit]} ${unit === 'm' ? 'min' : unit}`
  return `${ms} ms`
}

const bytes = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 } as const

/** A size in bytes. A bare number is in `unit`, as in Apache ZooKeeper; Zabra also accepts B, K, M or G (powers of 1024). */
export function size(
  unit: 'B' | 'KB',
  options: { min?: number; max?: number; negativeIsOff?: boolean } = {},
): ValueType<number> {
  const { min = 0, max = Number.MAX_SAFE_INTEGER, negativeIsOff = false } = options
  const unitName = unit === 'KB' ? 'kilobytes' : 'bytes'
  const limit = max === Number.MAX_SAFE_INTEGER ? 'up' : `to ${showSize(max)}`
  const off = negativeIsOff ? ', a negative number for off' : ''
  const expected = `a size from ${showSize(min)} ${limit}, as a bare number of ${unitName} or with B, K, M or G${off}`
  const read = (text: string): number | undefined => {
    if (negativeIsOff && /^-\d+$/.test(text)) return 0
    const hex = unit === 'B' && /^0x[\da-f]+$/i.test(text)
    if (hex) return Number(text)
    const match = /^(\d+)\s*(?:([kmg]?)(?:i?b)?)$/i.exec(text)
    if (!match) return undefined
    const bare = /^\d+$/.test(text)
    const factor =
      bare && unit === 'KB' ? bytes.k : bytes[(match[2] ?? '').toLowerCase() as keyof typeof bytes]
    return Number(match[1]) * factor
  }
  const misread = (text: string): string | undefined =>
    /^\d+\s*[a-z]+$/i.test(text) ? `ZooKeeper takes a bare number of ${unitName} here` : undefined
  return valueType({
    schema: () => z.int().check(z.minimum(min), z.maximum(max)),
    read,
    expected,
    unit: unitName,
    show: showSize,
    apacheReading: misread,
  })
}

/** Formats a size in the largest unit that divides it: 1048576 as `1 MiB`. */
export function showSize(size: number): string {
  if (size === 0) return '0'
  for (const [name, factor] of [
    ['GiB', bytes.g],
    ['MiB', bytes.m],
    ['KiB', bytes.k],
  ] as const)
    if (size % factor === 0) return `${size / factor} ${name}`
  return `${size} bytes`
}

/**
 * Formats a value for a file that ZooKeeper reads too: a bare number in the unit of its key. A time that is none of them has a suffix.
 */
export function bareValue(value: unknown, { unit, show }: ValueType<unknown>): string {
  const factor = { hours: 3_600_000, kilobytes: 1024 }[unit] ?? 1
  if (typeof value !== 'number') return show(value)
  return Number.isInteger(value / factor) || factor === 1
    ? String(value / factor)
    : `${value}${unit === 'hours' ? 'ms' : 'B'}`
}

const truthy = new Map([
  ['true', true],
  ['yes', true],
  ['on', true],
  ['false', false],
  ['no', false],
  ['off', false],
])

/**
 * True or false. `native` says how Apache ZooKeeper parses the key: `named` keys accept true and false only; `property` keys treat
 * everything but true as false; `yes-default` keys are off only for "no", `no-default` keys are on only for "yes". The last two are
 * read as Apache does, because they weaken a server: a file that it takes as safe must not switch off access lists or syncs here.
 */
export function bool(
  native: 'named' | 'property' | 'yes-default' | 'no-default' = 'property',
): ValueType<boolean> {
  if (native === 'yes-default' || native === 'no-default')
    return yesOrNo(native === 'yes-default' ? 'no' : 'yes')
  const misread = (text: string): string | undefined => {
    const lower = text.toLowerCase()
    if (native === 'named')
      return lower === 'true' || lower === 'false'
        ? undefined
        : 'ZooKeeper refuses all but true and false here'
    const apache = lower === 'true'
    return apache === truthy.get(lower) ? undefined : `ZooKeeper reads this text as ${apache}`
  }
  return valueType({
    schema: () => z.boolean(),
    read: (text) => truthy.get(text.toLowerCase()),
    expected: 'true or false (also yes, no, on, off)',
    apacheReading: misread,
  })
}

/** A boolean that only one text, `decisive`, takes to the other value than its default. */
function yesOrNo(decisive: 'yes' | 'no'): ValueType<boolean> {
  const read = (text: string): boolean => (text === decisive) === (decisive === 'yes')
  return valueType({
    schema: () => z.boolean(),
    read: (text) => (truthy.has(text.toLowerCase()) ? read(text) : undefined),
    expected: `yes or no; only ${decisive} in this spelling means ${decisive}, as in ZooKeeper`,
    apacheReading: (text) =>
      read(text) === truthy.get(text.toLowerCase())
        ? undefined
        : `ZooKeeper too takes only ${decisive} as ${decisive} here. Write yes or no`,
  })
}

/** Any text that is not empty. */
export function text(expected = 'text'): ValueType<string> {
  return valueType({ schema: () => z.string().check(z.minLength(1)), read: (given) => given, expected })
}

/** A password. An empty one means none, as in Apache ZooKeeper: a PEM file without a password may be configured so. */
export function password(): ValueType<string> {
  return valueType({ schema: () => z.string(), read: (given) => given, expected: 'a password' })
}

/** Text that matches a regular expression. */
export function pattern(form: RegExp, expected: string): ValueType<string> {
  return valueType({ schema: () => z.string().check(z.regex(form)), read: (given) => given, expected })
}

/** A regular expression. */
export function regularExpression(): ValueType<string> {
  const isExpression = (given: string): boolean => {
    try {
      return new RegExp(given) instanceof RegExp
    } catch {
      // The constructor is the only way to check an expression.
      return false
    }
  }
  return valueType({
    schema: () => z.string().check(z.minLength(1), z.refine(isExpression)),
    read: (given) => given,
    expected: 'a regular expression',
  })
}

/** A URI that contains a placeholder. */
export function uriPattern(placeholder: string): ValueType<string> {
  const isPattern = (given: string): boolean =>
    given.includes(placeholder) && URL.canParse(given.replaceAll(placeholder, '1'))
  return valueType({
    schema: () => z.string().check(z.refine(isPattern)),
    read: (given) => given,
    expected: `a URI with ${placeholder}`,
  })
}

/** A list of some of the given words, separated by commas. */
export function someOf<const Names extends readonly string[]>(
  ...names: Names
): ValueType<readonly Names[number][]> {
  const read = (given: string): readonly Names[number][] =>
    given
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '')
      .map((name) => names.find((known) => known.toLowerCase() === name.toLowerCase()) ?? name)
  return valueType<readonly Names[number][]>({
    schema: () =>
      z.readonly(
        z.array(z.enum(names as unknown as [string, ...string[]])).check(z.minLength(1)),
      ) as z.ZodMiniType<readonly Names[number][]>,
    read,
    expected: `one or more of ${names.join(', ')}, separated by commas`,
    show: (chosen) => chosen.join(', '),
  })
}

/** A list of names, separated by commas; only those that `isName` accepts. `showName` leaves out of a name what is secret. */
export function list(
  expected: string,
  isName: (name: string) => boolean = () => true,
  showName: (name: string) => string = String,
): ValueType<readonly string[]> {
  const read = (given: string): readonly string[] =>
    given
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== '')
  return valueType<readonly string[]>({
    schema: () => z.readonly(z.array(z.string().check(z.minLength(1), z.refine(isName)))),
    read,
    expected,
    show: (names) => names.map(showName).join(', '),
  })
}

/** Passwords by name, as `name:password` separated by commas. */
export function users(): ValueType<Readonly<Record<string, string>>> {
  const read = (given: string): Readonly<Record<string, string>> | undefined => {
    const pairs = given.split(',').map((pair) => /^\s*([^:]+):(.*?)\s*$/s.exec(pair))
    const names = new Set(pairs.map((pair) => pair?.[1]))
    if (names.has(undefined) || names.size < pairs.length) return undefined
    return Object.fromEntries(pairs.map((pair) => [pair![1], pair![2]]))
  }
  return valueType<Readonly<Record<string, string>>>({
    schema: () => z.readonly(z.record(z.string().check(z.minLength(1)), z.string().check(z.minLength(1)))),
    read,
    expected: 'pairs name:password, separated by commas',
    show: (given) => Object.keys(given).join(', '),
  })
}

/** Names of users by the ids of servers, as `id:name` separated by commas. */
export function userOfId(): ValueType<Readonly<Record<string, string>>> {
  return valueType<Readonly<Record<string, string>>>({
    schema: () =>
      z.readonly(z.record(z.string().check(z.regex(/^\d{1,3}$/)), z.string().check(z.minLength(1)))),
    read: users().read,
    expected: 'pairs id:user, separated by commas',
    show: (given) =>
      Object.entries(given)
        .map((pair) => pair.join(':'))
        .join(', '),
  })
}

/** One of the given words. An empty text in a file means the first. */
export function oneOf<const Names extends readonly [string, ...string[]]>(
  ...names: Names
): ValueType<Names[number]> {
  const read = (given: string): Names[number] | undefined => {
    const bare = given.replace(/^"(.*)"$/, '$1')
    return bare === '' ? names[0] : names.find((name) => name.toLowerCase() === bare.toLowerCase())
  }
  return valueType<Names[number]>({
    schema: () => z.enum(names as unknown as [Names[number], ...Names[number][]]),
    read,
    expected: `one of ${names.join(', ')}`,
  })
}

/** A value of the given type, or undefined. */
export function optional<T>(type: ValueType<T>): ValueType<T | undefined> {
  return {
    ...type,
    accepts: (value) => value === undefined || type.accepts(value),
    show: (value) => (value === undefined ? 'unset' : type.show(value)),
  }
}
