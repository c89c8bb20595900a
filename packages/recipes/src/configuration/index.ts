export { Configuration } from './configuration.ts'
export type { ConfigurationValue, ConfigurationOptions } from './configuration.ts'
