/** The key of the metadata by which a row names its agent, of those that the native backend knows by name. */
export const agentKey = 'slipway_agent';
